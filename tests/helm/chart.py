"""The chart, rendered by helm as users render it."""

import functools
import os
import pathlib
import subprocess
import tempfile

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
CHART = ROOT / "helm/tollgate"
VALUES = {file.name.removesuffix("-values.yaml"): file for file in sorted((CHART / "ci").glob("*-values.yaml"))}
RELEASE = "tollgate"
NAMESPACE = "gate"
# That of the schemas in schemas.py.
KUBERNETES = "1.34.4"
HELM = os.environ["HELM_TOOLS"] + "/helm"


class Dumper(yaml.SafeDumper):
    """Writes texts of several lines as blocks, so that a snapshot can be read."""


def text(dumper, value):
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


Dumper.add_representer(str, text)


def helm(*arguments):
    return subprocess.run([HELM, *arguments], capture_output=True, text=True, check=False)


def template(*arguments):
    """Returns what `helm template` ends with, for a release in a namespace of its own."""
    return helm("template", RELEASE, str(CHART), "--namespace", NAMESPACE, "--kube-version", KUBERNETES, *arguments)


def parsed(done):
    """Returns the resources that helm printed."""
    assert done.returncode == 0, done.stderr
    return [document for document in yaml.safe_load_all(done.stdout) if document]


@functools.cache
def rendered(name):
    """Returns the resources of one of the chart's files of values. They are shared: whoever changes one copies it first."""
    return parsed(template("--values", str(VALUES[name])))


def template_with(values, *arguments):
    """Returns what `helm template` ends with for values given here."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        yaml.safe_dump(values, file)
        file.flush()
        return template("--values", file.name, *arguments)


def for_each(test):
    """Runs a test for every file of values: test(self, name, resources)."""

    @functools.wraps(test)
    def run(self):
        for name in VALUES:
            with self.subTest(name):
                test(self, name, rendered(name))

    return run


def of_kind(resources, kind):
    return [resource for resource in resources if resource["kind"] == kind]


def component(resource):
    return resource["metadata"]["labels"]["app.kubernetes.io/component"]


def the(resources, kind, of="worker"):
    """Returns the one resource of a kind. Servers have some kinds besides, which `of="serve"` means."""
    [found] = [resource for resource in of_kind(resources, kind) if (component(resource) == "serve") == (of == "serve")]
    return found


def dump(resources):
    return yaml.dump_all(resources, Dumper=Dumper, sort_keys=False, width=140, explicit_start=True)


def metadata():
    return yaml.safe_load((CHART / "Chart.yaml").read_text())
