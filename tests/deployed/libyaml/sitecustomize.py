"""Programs of the operator's read and write YAML by libyaml.

SAM reads the template seven times in each deployment. PyYAML's own parser takes a core six times as long, for the same objects.
"""

try:
    import yaml

    yaml.SafeLoader, yaml.SafeDumper = yaml.CSafeLoader, yaml.CSafeDumper
except (ImportError, AttributeError):
    # Another Python, without it.
    pass
