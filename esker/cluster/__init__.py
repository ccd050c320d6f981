"""Clusters: joining Ray, the coordinator that outlives its viewers, and the processes that watch it."""
