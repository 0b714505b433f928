//! Programs that connect to a place that they are given, or administer one: what they do, and to whom, is in their arguments, so a list
//! has to name it (`ssh build-host uptime`, `curl https://api.example.com/status`).
//!
//! Left out: everything but the version. Some read commands when they are given nothing (`ftp`, `psql`), so an option must stand there.

use super::{Operands, PROGRAM, Program};

pub const PROGRAMS: &[Program] = &[
    Program { names: &["ssh"], options: "? !-V", operands: Operands::AtMost(0), ..PROGRAM },
    Program {
        names: &[
            "scp",
            "sftp",
            "nc",
            "ncat",
            "netcat",
            "ftp",
            "telnet",
            "tftp",
            "lftp",
            "rlogin",
            "rsh",
            "mosh",
            "ssh-copy-id",
            "sshpass",
            "sshfs",
        ],
        options: "? !--version",
        operands: Operands::AtMost(0),
        ..PROGRAM
    },
    Program {
        names: &["curl", "wget", "rsync", "socat", "http", "https", "xh", "aria2c", "axel", "lynx", "w3m", "links", "elinks"],
        options: "? !--version !-V",
        operands: Operands::AtMost(0),
        ..PROGRAM
    },
    Program {
        names: &["glab", "hub", "aws", "az", "gcloud", "gsutil", "bq", "doctl", "heroku", "flyctl", "vercel", "netlify", "oc", "eksctl"],
        options: "? !--version",
        operands: Operands::AtMost(0),
        ..PROGRAM
    },
    Program {
        names: &["psql", "mysql", "mariadb", "sqlite3", "mongo", "mongosh", "clickhouse", "clickhouse-client", "duckdb"],
        options: "? !--version",
        operands: Operands::AtMost(0),
        runs: Some("statements that start programs (`\\!`, `.shell`, `system`)"),
        ..PROGRAM
    },
    Program {
        names: &["redis-cli", "mysqldump", "pg_dump", "pg_restore", "mysqladmin", "createdb", "dropdb"],
        options: "? !--version",
        operands: Operands::AtMost(0),
        ..PROGRAM
    },
];
