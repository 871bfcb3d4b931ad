"""Makes the operator's programs read and write YAML with libyaml.

SAM reads the template seven times in each deployment. PyYAML's own parser produces the same
objects, but takes six times as long.
"""

try:
    import yaml

    yaml.SafeLoader, yaml.SafeDumper = yaml.CSafeLoader, yaml.CSafeDumper
except (ImportError, AttributeError):
    # Another Python interpreter without libyaml.
    pass
