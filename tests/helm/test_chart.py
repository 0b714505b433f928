"""Renders the chart with every file of values: lint, snapshots, the schemas of Kubernetes, and what must hold for each."""

import copy
import json
import os
import re
import subprocess
import tempfile
import unittest

import yaml

import chart

SNAPSHOTS = chart.ROOT / "tests/helm/snapshots"
UPDATES = os.environ.get("TOLLGATE_UPDATE_FIXTURES") == "1"


def pods(resources):
    """Returns every pod template, with the name of what makes it."""
    makers = chart.of_kind(resources, "StatefulSet") + chart.of_kind(resources, "Job")
    return [(maker["metadata"]["name"], maker["spec"]["template"]) for maker in makers]


class Rendered(unittest.TestCase):
    maxDiff = None

    def test_there_are_values_to_render(self):
        self.assertGreaterEqual(len(chart.VALUES), 7)

    def test_lint_has_nothing_to_say(self):
        files = [f"--values={file}" for file in chart.VALUES.values()]
        for file in files:
            with self.subTest(file):
                done = chart.helm("lint", "--strict", "--kube-version", chart.KUBERNETES, str(chart.CHART), file)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertNotIn("[WARNING]", done.stdout)

    @chart.for_each
    def test_snapshots(self, name, resources):
        shown = copy.deepcopy(resources)
        # These have tests of their own, and files that change for other reasons.
        for rule in chart.of_kind(shown, "PrometheusRule"):
            rule["spec"]["groups"] = "those of files/alerts.yaml"
        for dashboard in chart.of_kind(shown, "ConfigMap"):
            data = dashboard["data"]
            dashboard["data"] = {key: "as files/dashboard.json" if key.endswith(".json") else text for key, text in data.items()}
        shown = chart.dump(shown).replace(str(chart.metadata()["version"]), "VERSION")
        file = SNAPSHOTS / f"{name}.yaml"
        if UPDATES:
            file.parent.mkdir(exist_ok=True)
            file.write_text(shown)
        self.assertTrue(file.exists(), f"no snapshot {file.name}; TOLLGATE_UPDATE_FIXTURES=1 tests/helm/run writes it")
        self.assertEqual(file.read_text(), shown, "TOLLGATE_UPDATE_FIXTURES=1 tests/helm/run writes it anew")

    def test_no_snapshot_is_left_over(self):
        self.assertEqual({file.stem for file in SNAPSHOTS.glob("*.yaml")}, set(chart.VALUES))

    @chart.for_each
    def test_kubernetes_takes_it(self, name, resources):
        self.assertEqual(invalid(chart.dump(resources)), [], name)

    def test_kubernetes_schemas_refuse_what_is_wrong(self):
        resources = copy.deepcopy(chart.rendered("mtls-job-keda"))
        chart.the(resources, "StatefulSet")["spec"]["template"]["spec"]["containers"][0]["livenesProbe"] = {}
        chart.the(resources, "ScaledObject")["spec"]["maxReplicas"] = 4
        chart.the(resources, "PodMonitor")["spec"]["podMetricsEndpoints"][0]["interval"] = "often"
        strimzi = copy.deepcopy(chart.rendered("strimzi-tls"))
        chart.the(strimzi, "KafkaUser")["spec"]["authorization"]["acls"][0]["resource"]["patternType"] = "prefixed"
        kinds = sorted(problem["kind"] for problem in invalid(chart.dump(resources + strimzi)))
        self.assertEqual(kinds, ["KafkaUser", "PodMonitor", "ScaledObject", "StatefulSet"])

    def test_every_template_is_rendered_by_some_values(self):
        kinds = {resource["kind"] for name in chart.VALUES for resource in chart.rendered(name)}
        sources = "".join(file.read_text() for file in (chart.CHART / "templates").glob("*.yaml"))
        named = set(re.findall(r"^kind: ([A-Z]\w+)$", sources, re.MULTILINE)) | {"PodMonitor", "ServiceMonitor"}
        self.assertEqual(kinds, named)

    @chart.for_each
    def test_pods_may_do_nothing(self, name, resources):
        for maker, template in pods(resources):
            spec = template["spec"]
            self.assertIs(spec["automountServiceAccountToken"], False, maker)
            self.assertIs(spec["enableServiceLinks"], False, maker)
            self.assertIs(spec["securityContext"]["runAsNonRoot"], True, maker)
            self.assertEqual(spec["securityContext"]["seccompProfile"], {"type": "RuntimeDefault"}, maker)
            self.assertFalse({"hostNetwork", "hostPID", "hostIPC"} & set(spec), maker)
            [container] = spec["containers"]
            context = container["securityContext"]
            self.assertEqual(context["capabilities"], {"drop": ["ALL"]}, maker)
            self.assertIs(context["readOnlyRootFilesystem"], True, maker)
            self.assertIs(context["allowPrivilegeEscalation"], False, maker)
            self.assertTrue(all(mount.get("readOnly") for mount in container["volumeMounts"]), maker)
            self.assertIn("memory", container["resources"]["requests"] | container["resources"]["limits"], maker)

    @chart.for_each
    def test_selectors_find_their_own_pods_and_nothing_else(self, name, resources):
        sets = chart.of_kind(resources, "StatefulSet")
        for maker in sets:
            of = chart.component(maker)
            selectors = [maker["spec"]["selector"]["matchLabels"], chart.the(resources, "Service", of)["spec"]["selector"]]
            budgets = [budget for budget in chart.of_kind(resources, "PodDisruptionBudget") if chart.component(budget) == of]
            selectors += [budget["spec"]["selector"]["matchLabels"] for budget in budgets]
            for selector in selectors:
                found = [other for other, template in pods(resources) if selector.items() <= template["metadata"]["labels"].items()]
                self.assertEqual(found, [maker["metadata"]["name"]])

    @chart.for_each
    def test_monitors_find_workers_and_servers(self, name, resources):
        for monitor in chart.of_kind(resources, "PodMonitor") + chart.of_kind(resources, "ServiceMonitor"):
            selector = monitor["spec"]["selector"]
            [expression] = selector["matchExpressions"]
            services = [service["metadata"]["labels"] for service in chart.of_kind(resources, "Service")]
            templates = [template["metadata"]["labels"] for _, template in pods(resources)]
            for labels in services if monitor["kind"] == "ServiceMonitor" else templates:
                is_found = selector["matchLabels"].items() <= labels.items() and labels[expression["key"]] in expression["values"]
                self.assertEqual(is_found, labels[expression["key"]] in ("worker", "serve"))

    @chart.for_each
    def test_membership_is_the_pods_name(self, name, resources):
        environment = chart.the(resources, "StatefulSet")["spec"]["template"]["spec"]["containers"][0]["env"]
        [identity] = [variable for variable in environment if variable["name"] == "TOLLGATE__WORKER__INSTANCE_ID"]
        self.assertEqual(identity["valueFrom"], {"fieldRef": {"fieldPath": "metadata.name"}})

    @chart.for_each
    def test_secrets_are_files_and_never_values(self, name, resources):
        self.assertEqual(chart.of_kind(resources, "Secret"), [])
        for maker, template in pods(resources):
            for variable in template["spec"]["containers"][0]["env"]:
                self.assertNotIn("secretKeyRef", variable.get("valueFrom", {}), maker)
                if re.search("PASSWORD|SECRET|SUBJECT_KEY|JAAS", variable["name"]):
                    self.assertTrue(variable["name"].endswith("_FILE"), variable["name"])

    def test_pods_get_more_grace_than_a_stop_takes(self):
        expected = {"minimal": 45, "tls-scram": 36, "everything-else": 120}
        for name, seconds in expected.items():
            worker = chart.the(chart.rendered(name), "StatefulSet")
            self.assertEqual(worker["spec"]["template"]["spec"]["terminationGracePeriodSeconds"], seconds, name)
        servers = [template["spec"] for maker, template in pods(chart.rendered("serve")) if "serve" in maker]
        self.assertEqual([spec["terminationGracePeriodSeconds"] for spec in servers], [80])

    def test_the_startup_probe_waits_for_restores(self):
        for name, threshold in {"minimal": 900, "everything-else": 13}.items():
            container = chart.the(chart.rendered(name), "StatefulSet")["spec"]["template"]["spec"]["containers"][0]
            self.assertEqual(container["startupProbe"]["failureThreshold"], threshold)
            self.assertEqual(container["livenessProbe"]["httpGet"]["path"], "/livez")
            self.assertEqual(container["readinessProbe"]["httpGet"]["path"], "/readyz")

    def test_a_changed_configuration_restarts_workers(self):
        values = {"config": {"kafka": {"brokers": "kafka:9092"}, "limits": {"thread_queue_max": 65}}}
        annotations = [
            chart.the(resources, "StatefulSet")["spec"]["template"]["metadata"]["annotations"]["checksum/config"]
            for resources in (chart.rendered("minimal"), chart.parsed(chart.template_with(values)))
        ]
        self.assertNotEqual(*annotations)

    def test_scaling_ends_at_the_partitions(self):
        # 48 partitions with 5 members a pod; a lower maximum; 12 partitions with 2 members.
        self.assertEqual(chart.the(chart.rendered("mtls-job-keda"), "ScaledObject")["spec"]["maxReplicaCount"], 10)
        self.assertEqual(chart.the(chart.rendered("scram-keda"), "ScaledObject")["spec"]["maxReplicaCount"], 2)
        self.assertEqual(chart.the(chart.rendered("everything-else"), "HorizontalPodAutoscaler")["spec"]["maxReplicas"], 6)

    @chart.for_each
    def test_whoever_scales_sets_the_replicas(self, name, resources):
        scalers = chart.of_kind(resources, "ScaledObject") + chart.of_kind(resources, "HorizontalPodAutoscaler")
        for maker in chart.of_kind(resources, "StatefulSet"):
            is_scaled = maker["metadata"]["name"] in [scaler["spec"]["scaleTargetRef"]["name"] for scaler in scalers]
            self.assertEqual("replicas" in maker["spec"], not is_scaled)

    def test_network_policies_follow_the_configuration(self):
        def ports(resources, component):
            policies = [policy["spec"] for policy in chart.of_kind(resources, "NetworkPolicy")]
            label = "app.kubernetes.io/component"
            [policy] = [spec for spec in policies if spec["podSelector"]["matchLabels"][label] == component]
            return [[port["port"] for port in rule["ports"]] for rule in policy["egress"]]

        self.assertEqual(ports(chart.rendered("tls-scram"), "worker"), [[53, 53], [9093]])
        self.assertEqual(ports(chart.rendered("everything-else"), "worker"), [[53, 53], [9092], [80, 8443], [4317]])
        for component in ("worker", "topics"):
            self.assertEqual(ports(chart.rendered("mtls-job-keda"), component), [[53, 53], [9093, 9193, 9194]])

    def test_network_policies_let_traces_and_tokens_out(self):
        properties = {"sasl.mechanism": "OAUTHBEARER", "sasl.oauthbearer.token.endpoint.url": "https://login.example.org/token"}
        config = {"kafka": {"brokers": "kafka:9093", "properties": properties}, "traces": {"endpoint": "http://otel:4318/v1/traces"}}
        resources = chart.parsed(chart.template_with({"config": config, "networkPolicy": {"enabled": True}}))
        ports = {port["port"] for rule in chart.the(resources, "NetworkPolicy")["spec"]["egress"] for port in rule["ports"]}
        self.assertEqual(ports, {53, 9093, 443, 4318})

    def test_topics_outlive_the_release(self):
        for name in ("strimzi-tls", "strimzi-scram"):
            topics = chart.of_kind(chart.rendered(name), "KafkaTopic")
            self.assertEqual(len(topics), 8, "agent.replies is there with servers alone")
            for topic in topics:
                self.assertEqual(topic["metadata"]["annotations"]["helm.sh/resource-policy"], "keep")

    def test_rules_and_dashboard_are_those_of_the_files(self):
        resources = chart.rendered("tls-scram")
        rules = yaml.safe_load((chart.CHART / "files/alerts.yaml").read_text())
        rules = rules["groups"] if isinstance(rules, dict) else rules
        self.assertTrue(rules)
        self.assertEqual(chart.the(resources, "PrometheusRule")["spec"]["groups"], rules)
        linked = str(chart.the(chart.rendered("everything-else"), "PrometheusRule")["spec"]["groups"])
        self.assertIn("'runbook_url': 'https://wiki.example.com/gate#", linked)
        self.assertNotIn("example.org", linked)
        [dashboard] = [c for c in chart.of_kind(resources, "ConfigMap") if c["metadata"]["name"].endswith("-dashboard")]
        [text] = dashboard["data"].values()
        self.assertEqual(json.loads(text), json.loads((chart.CHART / "files/dashboard.json").read_text()))

    def test_notes_say_who_may_allow_calls(self):
        # `helm template` leaves notes out; `install --dry-run=client` needs no cluster.
        done = chart.helm("install", "tollgate", str(chart.CHART), "--dry-run=client", f"--values={chart.VALUES['scram-keda']}")
        self.assertEqual(done.returncode, 0, done.stderr)
        for sentence in ["WHO MAY WRITE agent.decisions MAY ALLOW CALLS", "WARNING: kafka.tls.enabled is false", "partitions are silent"]:
            self.assertIn(sentence, done.stdout)


def invalid(manifests):
    """Returns what kubeconform objects to."""
    with tempfile.TemporaryDirectory() as cache:
        location = os.environ["KUBERNETES_SCHEMAS"] + "/{{ .ResourceKind }}{{ .KindSuffix }}.json"
        program = os.environ["HELM_TOOLS"] + "/kubeconform"
        command = [program, "-strict", "-output=json", "-summary", f"-cache={cache}", f"-schema-location={location}"]
        done = subprocess.run(command, input=manifests, capture_output=True, text=True, check=False)
    answer = json.loads(done.stdout)
    count = len([document for document in yaml.safe_load_all(manifests) if document])
    summary = answer["summary"]
    assert sum(summary.values()) == count and summary["skipped"] == 0, f"{count} resources and {summary}"
    return answer.get("resources") or []


if __name__ == "__main__":
    unittest.main()
