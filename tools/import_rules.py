"""The import-linter contract behind the layer table: a module may import what its row lists, nothing else."""

import sys
from typing import Any

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output


def within(module: str, package: str) -> bool:
    return module == package or module.startswith(package + ".")


class MayImport(Contract):
    """Modules import the standard library, each other and `allowed`; a layer without code keeps the rule.

    Importing a module runs the `__init__` of each package around it, so the rule holds for those as well.
    """

    modules: Any = fields.ListField(subfield=fields.StringField())
    allowed: Any = fields.ListField(subfield=fields.StringField(), required=False, default=[])

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        violations = sorted(
            (importer, imported)
            for importer in self.bound_modules(graph)
            for imported in graph.find_modules_directly_imported_by(importer)
            if not self.permits(imported)
        )
        return ContractCheck(kept=not violations, metadata={"violations": violations, "graph": graph})

    def bound_modules(self, graph: ImportGraph) -> set[str]:
        inside = {name for name in graph.modules if any(within(name, rule) for rule in self.modules)}
        parents = {name.rsplit(".", depth)[0] for name in inside for depth in range(1, name.count(".") + 1)}
        return inside | parents

    def permits(self, imported: str) -> bool:
        if imported.partition(".")[0] in sys.stdlib_module_names:
            return True
        return any(within(imported, package) for package in (*self.modules, *self.allowed))

    def render_broken_contract(self, check: ContractCheck) -> None:
        graph: Any = check.metadata["graph"]
        for importer, imported in check.metadata["violations"]:
            details = graph.get_import_details(importer=importer, imported=imported)
            lines = ", ".join(str(detail["line_number"]) for detail in details)
            output.print_error(f"{importer} must not import {imported} (line {lines})", bold=False)
        may = ", ".join(["the standard library", *self.modules, *self.allowed])
        output.print_error(f"It may import {may}.", bold=False)
