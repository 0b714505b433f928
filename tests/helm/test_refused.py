"""Values that must be refused, each with a message that names the field and the fix: refused.yaml has them."""

import concurrent.futures
import copy
import json
import os
import unittest

import yaml

import chart

CASES = yaml.safe_load((chart.ROOT / "tests/helm/refused.yaml").read_text())
GOOD = {"config": {"kafka": {"brokers": "kafka:9092"}}}


def merged(under, over):
    """Returns two trees of values as one, as helm does it for several files."""
    result = copy.deepcopy(under)
    for key, value in over.items():
        result[key] = merged(result.get(key) or {}, value) if isinstance(value, dict) else value
    return result


def each(values):
    """Returns what helm makes of each, as many at once as there are cores."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(chart.template_with, values))


# What the schema takes and values.yaml leaves out: Helm's own keys, and Kubernetes' forms that are passed on.
FORMS = {"enabled", "global", "affinity", "resources", "behavior", "podSecurityContext", "containerSecurityContext", "liveness", "readiness"}


def unmatched(values, schema, definitions, path=()):
    """Returns the keys that stand in only one of values.yaml and the schema, config left out."""
    schema = definitions[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema
    if not isinstance(values, dict) or not values or "properties" not in schema or path == ("config",):
        return []
    differing = [".".join([*path, key]) for key in sorted(values.keys() ^ schema["properties"].keys()) if not FORMS & {key, *path[-1:]}]
    shared = values.keys() & schema["properties"].keys()
    below = [unmatched(values[key], schema["properties"][key], definitions, (*path, key)) for key in sorted(shared)]
    return differing + [key for keys in below for key in keys]


class Refused(unittest.TestCase):
    def test_each_is_refused_and_says_why(self):
        self.assertGreater(len(CASES), 80)
        for case, done in zip(CASES, each(merged(GOOD, case["values"]) for case in CASES)):
            with self.subTest(case["says"]):
                self.assertNotEqual(done.returncode, 0, "it was rendered")
                for words in [case["says"]] if isinstance(case["says"], str) else case["says"]:
                    self.assertIn(words, done.stderr)

    def test_each_is_fine_without_its_fault(self):
        self.assertEqual(chart.template_with(GOOD).returncode, 0)
        mended = [case for case in CASES if "mended" in case]
        for case, done in zip(mended, each(merged(merged(GOOD, case["values"]), case["mended"]) for case in mended)):
            with self.subTest(case["says"]):
                self.assertEqual(done.returncode, 0, done.stderr)

    def test_values_and_schema_name_the_same_keys(self):
        schema = json.loads((chart.CHART / "values.schema.json").read_text())
        values = yaml.safe_load((chart.CHART / "values.yaml").read_text())
        self.assertEqual(unmatched(values, schema, schema["definitions"]), [])
        del values["topics"]["manage"]
        values["image"]["tg"] = ""
        self.assertEqual(unmatched(values, schema, schema["definitions"]), ["image.tg", "topics.manage"])

    def test_nothing_at_all_names_the_brokers(self):
        done = chart.template()
        self.assertIn("config.kafka.brokers: found nothing", done.stderr)

    def test_all_faults_come_at_once(self):
        values = {"keda": {"enabled": True}, "hpa": {"enabled": True}, "terminationGracePeriodSeconds": 5}
        done = chart.template_with(values)
        for words in ["config.kafka.brokers", "keda.enabled and hpa.enabled", "terminationGracePeriodSeconds", "topics.partitions"]:
            self.assertIn(words, done.stderr)


if __name__ == "__main__":
    unittest.main()
