"""Low-rank populations of any torch module: members share each product with the centre's weights and add a thin one."""
