"""Hugging Face config.json in, catalog entry out: read_config, import_config, to_yaml."""

from kvplan.importer.assemble import import_config
from kvplan.importer.catalog_file import Origin, to_yaml, write_catalog_file, write_model
from kvplan.importer.document import Config, parse_config, read_config
from kvplan.importer.groups import compress_pattern, expand_pattern
from kvplan.importer.records import Group, ImportedModel, Keys

__all__ = [
    "Config",
    "Group",
    "ImportedModel",
    "Keys",
    "Origin",
    "compress_pattern",
    "expand_pattern",
    "import_config",
    "parse_config",
    "read_config",
    "to_yaml",
    "write_catalog_file",
    "write_model",
]
