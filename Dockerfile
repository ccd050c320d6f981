# esker in a container. Build the wheel first (`make release`), then:
#   docker build --target cpu  -t esker:cpu .
#   docker build --target cuda -t esker:cuda .
#   docker run --rm -v "$PWD/runs:/work/runs" esker:cpu train CartPole-v1
#   docker run --rm --gpus all -v "$PWD/runs:/work/runs" esker:cuda train HalfCheetah-v5 --algo aes-rl --device cuda
FROM python:3.11-slim AS base
# EGL and OSMesa draw MuJoCo's videos without a display.
RUN apt-get update && apt-get install -y --no-install-recommends libegl1 libosmesa6 libgl1-mesa-dri && rm -rf /var/lib/apt/lists/*
RUN useradd --create-home esker && mkdir /work && chown esker /work
# The versions that the tests are run with.
COPY constraints.txt dist/esker-*.whl /tmp/

FROM base AS cpu
# With its version pinned, pip prefers torch's small build from the second index (2.13.0+cpu is newer than 2.13.0).
RUN pip install --no-cache-dir -c /tmp/constraints.txt --extra-index-url https://download.pytorch.org/whl/cpu torch \
 && wheel=$(ls /tmp/esker-*.whl) && pip install --no-cache-dir -c /tmp/constraints.txt "${wheel}[mujoco,box2d,atari,ray,tensorboard,sweep,plot,video,export]"
USER esker
WORKDIR /work
ENTRYPOINT ["esker"]

# torch's default wheel for Linux brings CUDA's libraries; the host needs NVIDIA's driver and container toolkit.
FROM base AS cuda
RUN wheel=$(ls /tmp/esker-*.whl) && pip install --no-cache-dir -c /tmp/constraints.txt "${wheel}[mujoco,box2d,atari,ray,tensorboard,sweep,plot,video,export,language]"
USER esker
WORKDIR /work
ENTRYPOINT ["esker"]
