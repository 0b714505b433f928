"""What the chart gives to pods, given to the program itself: every rendered file, variable and argument must be one that it takes."""

import copy
import functools
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import yaml

import chart

TOLLGATE = os.environ["TOLLGATE"]
UPDATES = os.environ.get("TOLLGATE_UPDATE_FIXTURES") == "1"
PASSPHRASE = "not-a-secret"


def openssl(*arguments):
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)


class Pod:
    """The files and variables of a rendered pod, in a folder that stands for its root."""

    def __init__(self, resources, maker, root):
        self.resources, self.root = resources, pathlib.Path(root)
        self.spec = maker["spec"]["template"]["spec"]
        [self.container] = self.spec["containers"]
        self.pod = f"{maker['metadata']['name']}-0"
        volumes = {volume["name"]: volume for volume in self.spec["volumes"]}
        for mount in self.container["volumeMounts"]:
            folder = self.root / mount["mountPath"].lstrip("/")
            folder.mkdir(parents=True)
            for name, content in self.files(volumes[mount["name"]]).items():
                (folder / name).parent.mkdir(exist_ok=True)
                (folder / name).write_bytes(content)

    def files(self, volume):
        """Returns the files of a volume. A Secret holds what its key is named after."""
        if "configMap" in volume:
            [found] = [c for c in chart.of_kind(self.resources, "ConfigMap") if c["metadata"]["name"] == volume["configMap"]["name"]]
            return {name: self.inside(text).encode() for name, text in found["data"].items()}
        if "projected" in volume:
            items = [item for source in volume["projected"]["sources"] for item in source["secret"]["items"]]
            return {item["path"]: content_of(item["key"]) for item in items}
        assert volume["name"] == "opa", volume
        return {name: content_of(name) for name in ("ca.crt", "token")}

    def inside(self, text):
        """Returns a text with absolute paths below the folder."""
        return re.sub(r"/etc/(?=tollgate/|opa/)", f"{self.root}/etc/", text)

    def environment(self):
        variables = {}
        for variable in self.container["env"]:
            path = variable.get("valueFrom", {}).get("fieldRef", {}).get("fieldPath")
            index = "metadata.labels['apps.kubernetes.io/pod-index']"
            variables[variable["name"]] = {None: variable.get("value"), "metadata.name": self.pod, index: "0"}.get(path, "some-label")
        return {name: self.inside(value) for name, value in variables.items()}

    def run(self, *arguments):
        return subprocess.run([TOLLGATE, *arguments], env=self.environment(), capture_output=True, text=True, check=False)


CERTIFICATES = {}


def content_of(key):
    """Returns what a test has in a key of a Secret: certificates, keys and tokens that can be read, and for all else a text."""
    if key == "tokens.yaml":
        return (pathlib.Path(__file__).parents[2] / "config/compose-tokens.yaml").read_bytes()
    if not CERTIFICATES:
        with tempfile.TemporaryDirectory() as place:
            key_file, certificate = f"{place}/key", f"{place}/certificate"
            new = ["-newkey", "rsa:2048", "-passout", f"pass:{PASSPHRASE}", "-subj", "/CN=tollgate", "-days", "2"]
            openssl("req", "-x509", *new, "-keyout", key_file, "-out", certificate)
            plain = f"{place}/plain"
            openssl("pkey", "-in", key_file, "-passin", f"pass:{PASSPHRASE}", "-out", plain)
            for name, file in {".crt": certificate, ".key": plain, "encrypted": key_file}.items():
                CERTIFICATES[name] = pathlib.Path(file).read_bytes()
    return CERTIFICATES.get(pathlib.Path(key).suffix, PASSPHRASE.encode())


def makers(resources):
    return chart.of_kind(resources, "StatefulSet") + chart.of_kind(resources, "Job")


def for_each_pod(test):
    """Runs a test for every pod of every file of values: test(self, name, maker, pod)."""

    @chart.for_each
    @functools.wraps(test)
    def run(self, name, resources):
        for maker in makers(resources):
            with self.subTest(kind=maker["kind"]), tempfile.TemporaryDirectory() as root:
                test(self, name, maker, Pod(resources, maker, root))

    return run


# What clients must have of kafka.sasl, kafka.tls and extraEnv, by file of values.
PROPERTIES = {
    "tls-scram": {
        "security.protocol": "sasl_ssl",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "tollgate",
        "sasl.password": PASSPHRASE,
    },
    "scram-keda": {
        "security.protocol": "sasl_plaintext",
        "sasl.mechanism": "SCRAM-SHA-256",
        "sasl.username": PASSPHRASE,
        "sasl.password": PASSPHRASE,
    },
    "mtls-job-keda": {"security.protocol": "ssl", "ssl.key.password": PASSPHRASE},
    "strimzi-scram": {"security.protocol": "sasl_ssl", "sasl.username": "tollgate", "sasl.password": PASSPHRASE},
    "strimzi-tls": {"security.protocol": "ssl"},
    "everything-else": {"sasl.username": "tollgate", "sasl.password": PASSPHRASE, "client.rack": "some-label"},
    "minimal": {},
    "serve": {"security.protocol": "sasl_plaintext", "sasl.username": "tollgate", "sasl.password": PASSPHRASE},
}
# And those of the topic job, which signs in as somebody else.
JOB_PROPERTIES = {
    "mtls-job-keda": {"security.protocol": "ssl", "ssl.key.password": None},
    "scram-keda": {"security.protocol": "sasl_plaintext", "sasl.username": "admin", "sasl.password": PASSPHRASE},
    "everything-else": {"security.protocol": "sasl_ssl", "sasl.username": PASSPHRASE, "sasl.password": PASSPHRASE},
}


def value_of(properties, key):
    """Returns a property's value, which may stand in a file that the configuration names instead."""
    file = properties.get(f"{key}_file")
    return pathlib.Path(file).read_text() if file else properties.get(key)


class Configuration(unittest.TestCase):
    @for_each_pod
    def test_the_program_takes_it(self, name, maker, pod):
        done = pod.run("config", "check")
        self.assertEqual(done.returncode, 0, done.stderr)
        effective = json.loads(done.stdout)
        values = yaml.safe_load(chart.VALUES[name].read_text())
        self.assertEqual(effective["kafka"]["brokers"], values["config"]["kafka"]["brokers"])
        if maker["kind"] == "StatefulSet":
            self.assertEqual(effective["worker"]["instance_id"], pod.pod)
            port = pod.container["ports"][0]["containerPort"]
            self.assertTrue(effective["admin"]["listen"].endswith(f":{port}"))
            self.assertFalse(effective["admin"]["listen"].startswith("127."), "probes come from outside")
        wanted = {"StatefulSet": PROPERTIES, "Job": JOB_PROPERTIES}[maker["kind"]][name]
        properties = effective["kafka"]["properties"]
        self.assertEqual({key: value_of(properties, key) for key in wanted}, wanted)

    def test_an_encrypted_key_is_opened_with_its_password(self):
        resources = chart.rendered("mtls-job-keda")
        with tempfile.TemporaryDirectory() as root:
            pod = Pod(resources, chart.the(resources, "StatefulSet"), root)
            key = pod.root / "etc/tollgate/secrets/client/tls.key"
            key.write_bytes(CERTIFICATES["encrypted"])
            self.assertEqual(pod.run("config", "check").returncode, 0)
            (key.parent / "passphrase").write_text("another")
            self.assertEqual(pod.run("config", "check").returncode, 1)

    def test_a_wrong_variable_or_key_is_found(self):
        resources = copy.deepcopy(chart.rendered("minimal"))
        worker = chart.the(resources, "StatefulSet")
        environment = worker["spec"]["template"]["spec"]["containers"][0]["env"]
        environment.append({"name": "TOLLGATE__WORKER__MEMBRES", "value": "2"})
        with tempfile.TemporaryDirectory() as root:
            done = Pod(resources, worker, root).run("config", "check")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("TOLLGATE__WORKER__MEMBRES", done.stderr)

    def test_a_forgotten_capability_stays_forgotten(self):
        """Helm drops null where the chart has a default; where it has none, null must stay: here it denies a tool."""
        [text] = [resource["data"]["tollgate.yaml"] for resource in chart.rendered("tls-scram") if "tollgate.yaml" in resource.get("data", {})]
        capabilities = yaml.safe_load(text)["guardrails"]["provider"]["config"]["tool_capabilities"]
        self.assertEqual(capabilities, {"lookup_glossary": "none", "execute_code": None})

    def test_the_topic_job_signs_in_as_itself(self):
        own = {"mtls-job-keda": "kafka-admin-cert", "scram-keda": "kafka-admin", "everything-else": "kafka-users"}
        workers = {"mtls-job-keda": "tollgate-cert", "scram-keda": "tollgate-kafka", "everything-else": "tollgate.password"}
        for name, secret in own.items():
            job = chart.the(chart.rendered(name), "Job")["spec"]["template"]["spec"]
            self.assertIn(secret, str(job["volumes"]), name)
            self.assertNotIn(workers[name], str(job["volumes"]), name)
            names = [variable["name"] for variable in job["containers"][0]["env"]]
            self.assertEqual(len(names), len(set(names)), names)

    @for_each_pod
    def test_the_program_takes_the_arguments(self, name, maker, pod):
        """With --help behind them, arguments are read and nothing is done."""
        done = pod.run(*pod.container["args"], "--help")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotEqual(pod.run(*pod.container["args"], "--no-such", "--help").returncode, 0)

    def test_versions_are_one(self):
        cargo = (chart.ROOT / "Cargo.toml").read_text()
        [version] = re.findall(r'^\[workspace\.package\]\nversion = "([^"]+)"', cargo, re.MULTILINE)
        self.assertEqual(chart.metadata()["version"], version)
        self.assertEqual(chart.metadata()["appVersion"], version)
        image = chart.the(chart.rendered("minimal"), "StatefulSet")["spec"]["template"]["spec"]["containers"][0]["image"]
        self.assertEqual(image, f"tollgate:{version}")

    def test_defaults_of_topics_and_group_are_the_programs(self):
        defaults = yaml.safe_load((chart.ROOT / "config/tollgate.yaml").read_text())
        rules = chart.the(chart.rendered("strimzi-scram"), "KafkaUser")["spec"]["authorization"]["acls"]
        topics = {rule["resource"]["name"] for rule in rules if rule["resource"]["type"] == "topic"}
        named = {role: name for role, name in defaults["kafka"]["topics"].items() if role not in UNUSED_TOPICS}
        self.assertEqual(topics, set(named.values()))
        groups = {rule["resource"]["name"] for rule in rules if rule["resource"]["type"] == "group"}
        self.assertEqual(groups, {defaults["kafka"]["group_id"], defaults["kafka"]["group_id"] + "-abuse"})
        seconds = chart.the(chart.rendered("minimal"), "StatefulSet")["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
        self.assertEqual(seconds, 15 + defaults["worker"]["drain_timeout_ms"] // 1000)

    def test_the_schema_of_the_configuration_is_the_programs(self):
        file = chart.CHART / "values.schema.json"
        schema = json.loads(file.read_text())
        printed = json.loads((chart.ROOT / "docs/schemas/configuration.json").read_text())
        expected = {key: value for key, value in printed.items() if key not in ("$schema", "title")}
        expected["description"] = schema["properties"]["config"]["description"]
        if UPDATES:
            schema["properties"]["config"] = expected
            file.write_text(written(schema) + "\n")
        self.assertEqual(schema["properties"]["config"], expected, "TOLLGATE_UPDATE_FIXTURES=1 tests/helm/run writes it anew")


# Topics that the chart's workers neither read nor write: that of `run --shadow`, and that of servers.
UNUSED_TOPICS = {"shadow", "replies"}


def written(value, indent=0, before=0):
    """Returns JSON in lines of up to 138 characters: what fits into one stands in one."""
    line = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, (dict, list)) or len(line) + indent + before <= 138:
        return line
    inner = " " * (indent + 2)
    if isinstance(value, dict):
        parts = [f"{inner}{json.dumps(key)}: {written(item, indent + 2, len(key) + 5)}" for key, item in value.items()]
        return "{\n" + ",\n".join(parts) + "\n" + " " * indent + "}"
    return "[\n" + ",\n".join(inner + written(item, indent + 2, 1) for item in value) + "\n" + " " * indent + "]"


if __name__ == "__main__":
    unittest.main()
