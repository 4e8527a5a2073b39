"""What gpu-ready knows and how it decides: pure functions, text in, values out.

Shipped to hosts inside the modules of ``library/``: Python 3.6 and newer, standard library only,
relative imports only (the package is ``ansible.module_utils.gpu_ready`` on a host and ``gpu_ready`` on a controller).
"""
