"""Import from the archive in which Ansible sends modules, with each source compiled once.

CPython compiles a module of an archive twice: for its file name (`get_filename`), and to run it
(https://github.com/python/cpython/issues/141276). Ansible's archives have no byte code.
"""

import os
import sys
import zipimport


class CompileOnce(zipimport.zipimporter):
    def get_filename(self, fullname: str) -> str:
        path = os.path.join(self.archive, self.prefix + fullname.rpartition(".")[2])
        return os.path.join(path, "__init__.py") if self.is_package(fullname) else path + ".py"


def compile_once() -> None:
    sys.path_hooks.insert(0, CompileOnce)
    for path, finder in list(sys.path_importer_cache.items()):
        if isinstance(finder, zipimport.zipimporter):
            del sys.path_importer_cache[path]
