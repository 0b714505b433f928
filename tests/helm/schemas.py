"""Makes JSON Schemas for kubeconform from what the projects themselves publish: schemas.py FOLDER.

Kubernetes' come from the OpenAPI document in its Go module, those of the Prometheus operator and KEDA from the definitions in theirs, and
Strimzi's from the generator among its Maven artifacts.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

import yaml

KUBERNETES = "k8s.io/kubernetes@v1.34.4"
PROMETHEUS_OPERATOR = "github.com/prometheus-operator/prometheus-operator@v0.85.0"
KEDA = "github.com/kedacore/keda/v2@v2.21.0"
STRIMZI_CLASSES = {"topic": "io.strimzi.api.kafka.model.topic.KafkaTopic", "user": "io.strimzi.api.kafka.model.user.KafkaUser"}

# What the chart renders of Kubernetes itself.
KINDS = {
    "ConfigMap", "HorizontalPodAutoscaler", "Job", "NetworkPolicy", "PodDisruptionBudget", "Service", "ServiceAccount", "StatefulSet",
}
# Formats that are notes for readers; validators differ in what they make of them.
NOTES = {"format", "x-kubernetes-int-or-string", "x-kubernetes-group-version-kind"}


def module(name):
    """Returns the folder of a Go module."""
    found = subprocess.run(["go", "mod", "download", "-json", name], capture_output=True, text=True, check=False)
    if found.returncode:
        sys.exit(f"{name} could not be fetched: {found.stdout}{found.stderr}")
    return pathlib.Path(json.loads(found.stdout)["Dir"])


def closed(schema, definitions):
    """Returns a schema with its references put in place, in which objects take no other keys than those they have."""
    if isinstance(schema, list):
        return [closed(item, definitions) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return closed(definitions[schema["$ref"].removeprefix("#/definitions/")], definitions)
    either = schema.get("x-kubernetes-int-or-string") or schema.get("format") == "int-or-string"
    if either:
        return {"type": ["integer", "string", "null"]}
    result = {key: closed(value, definitions) for key, value in schema.items() if key not in NOTES and key != "properties"}
    if "properties" in schema:
        result["properties"] = {name: closed(value, definitions) for name, value in schema["properties"].items()}
        if not schema.get("x-kubernetes-preserve-unknown-fields"):
            result.setdefault("additionalProperties", False)
    # Kubernetes takes null for whatever may be left out.
    if isinstance(result.get("type"), str) and "enum" not in result:
        result["type"] = [result["type"], "null"]
    return result


def write(folder, kind, version, schema):
    schema = {"$schema": "http://json-schema.org/draft-07/schema#", **schema, "type": "object"}
    # The names that kubeconform looks for: of a group, the first part.
    group, _, version = version.rpartition("/")
    name = "-".join(filter(None, [kind.lower(), group.split(".")[0], version]))
    (folder / f"{name}.json").write_text(json.dumps(schema))


def kubernetes(folder):
    definitions = json.loads((module(KUBERNETES) / "api/openapi-spec/swagger.json").read_text())["definitions"]
    # A quantity is a string for writers, and a number for whoever forgets the quotes.
    definitions["io.k8s.apimachinery.pkg.api.resource.Quantity"] = {"type": ["string", "number"]}
    for schema in definitions.values():
        for kind in schema.get("x-kubernetes-group-version-kind", []):
            if kind["kind"] in KINDS:
                version = "/".join(filter(None, [kind["group"], kind["version"]]))
                write(folder, kind["kind"], version, closed(schema, definitions))


def custom(folder, file):
    """Writes the schema of every served version of a CustomResourceDefinition."""
    spec = yaml.safe_load(file.read_text())["spec"]
    for version in spec["versions"]:
        schema = closed(version["schema"]["openAPIV3Schema"], {})
        # The API server adds these to every resource.
        schema["properties"] |= {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"}}
        schema["required"] = sorted({*schema.get("required", []), "apiVersion", "kind", "metadata", "spec"})
        write(folder, spec["names"]["kind"], f"{spec['group']}/{version['name']}", schema)


def strimzi(folder):
    pom = pathlib.Path(__file__).with_name("strimzi-crds.xml")
    with tempfile.TemporaryDirectory() as place:
        jars, crds = pathlib.Path(place, "jars"), pathlib.Path(place, "crds")
        crds.mkdir()
        fetch = ["mvn", "--quiet", "--batch-mode", "-Dstyle.color=never", f"--file={pom}", f"-DoutputDirectory={jars}", "-DincludeScope=runtime"]
        subprocess.run([*fetch, "dependency:copy-dependencies"], check=True)
        files = {name: crds / f"{name}.yaml" for name in STRIMZI_CLASSES}
        classes = [f"{STRIMZI_CLASSES[name]}={file}" for name, file in files.items()]
        generate = ["java", "-cp", f"{jars}/*", "io.strimzi.crdgenerator.CrdGenerator", "--yaml", *classes]
        made = subprocess.run(generate, capture_output=True, text=True, check=False)
        for file in files.values():
            if not file.exists():
                sys.exit(f"Strimzi's generator made no {file.name}: {made.stdout}{made.stderr}")
            custom(folder, file)


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    kubernetes(folder)
    operator = module(PROMETHEUS_OPERATOR) / "example/prometheus-operator-crd"
    for name in ["podmonitors", "servicemonitors", "prometheusrules"]:
        custom(folder, operator / f"monitoring.coreos.com_{name}.yaml")
    keda = module(KEDA) / "config/crd/bases"
    for name in ["scaledobjects", "triggerauthentications"]:
        custom(folder, keda / f"keda.sh_{name}.yaml")
    strimzi(folder)


main(pathlib.Path(sys.argv[1]))
