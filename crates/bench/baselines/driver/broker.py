"""A broker for a run: the cluster that TOLLGATE_BROKERS names, or one that is started from the jars of the tests and ends with us."""

import ctypes
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[4]
BROKER = ROOT / "crates/testkit/src/broker"
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()
START_SECONDS = 120
CLUSTER_ID = "dG9sbGdhdGUtYmVuY2gtMQ"
PR_SET_PDEATHSIG = 1


def end_with_parent():
    """In the child: whatever happens to us, it ends too."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def free_port():
    # From below the range that systems take the ports of outgoing connections from.
    for port in range(15_000 + os.getpid() % 5_000, 30_000):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", port + 1))
        return port
    raise RuntimeError("no free port")


def jars():
    """The broker's jars, which the tests download as well."""
    pom = BROKER / "pom.xml"
    for folder in (TARGET / "kafka-jars", TARGET / "baselines/kafka-jars"):
        if (folder / "pom.xml").exists() and (folder / "pom.xml").read_bytes() == pom.read_bytes():
            return folder
    folder = TARGET / "baselines/kafka-jars"
    shutil.rmtree(folder, ignore_errors=True)
    command = ["mvn", "-q", "-B", "-f", pom, "dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={folder}"]
    subprocess.run(command, check=True)
    shutil.copy(pom, folder / "pom.xml")
    return folder


class Broker:
    """Use it as a context; `address` is for bootstrap.servers."""

    def __enter__(self):
        self.process, self.home = None, None
        self.address = os.environ.get("TOLLGATE_BROKERS")
        if not self.address:
            self.home = Path(tempfile.mkdtemp(prefix="tollgate-baselines."))
            try:
                self.start()
            except BaseException:
                self.__exit__()
                raise
        return self

    def start(self):
        port = free_port()
        self.address = f"127.0.0.1:{port}"
        properties = self.home / "server.properties"
        properties.write_text(
            "\n".join(
                (
                    (BROKER / "server.properties").read_text(),
                    f"listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{port + 1}",
                    f"controller.quorum.voters=1@127.0.0.1:{port + 1}",
                    f"log.dirs={self.home / 'data'}",
                    # A broker that is busy is not to be fenced for that.
                    "broker.session.timeout.ms=30000",
                )
            )
        )
        log4j = BROKER / "log4j2.properties"
        java = ["java", "-cp", f"{jars()}/*", f"-Dlog4j2.configurationFile={log4j}"]
        with open(self.home / "log", "wb") as log:
            format_storage = [*java, "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", properties]
            subprocess.run(format_storage, check=True, stdout=log, stderr=log)
            command = [*java, "-Xms512m", "-Xmx1g", "kafka.Kafka", properties]
            self.process = subprocess.Popen(command, stdout=log, stderr=log, preexec_fn=end_with_parent)
        from confluent_kafka.admin import AdminClient

        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                AdminClient({"bootstrap.servers": self.address}).list_topics(timeout=10)
                return
            except Exception:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError((self.home / "log").read_text(errors="replace")[-4000:]) from None
                time.sleep(0.1)

    def __exit__(self, *_):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
        if self.home is not None:
            shutil.rmtree(self.home, ignore_errors=True)
