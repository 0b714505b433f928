//! Programs that run the code that they are given: whoever lists one allows everything. Their arguments must be literal, so that at least
//! the code, or its name, is the agent's and is seen.

use super::reading::literal;
use super::{Operands, PROGRAM, Program};

const CODE: Program = Program { operands: Operands::Own(literal), runs: Some("the code or script that it is given"), ..PROGRAM };

/// TABLE: the programs.
pub const PROGRAMS: &[Program] = &[
    Program {
        names: &[
            "R",
            "Rscript",
            "bb",
            "bun",
            "clj",
            "coffee",
            "crystal",
            "csh",
            "dart",
            "deno",
            "elixir",
            "elvish",
            "erl",
            "escript",
            "fish",
            "ghc",
            "ghci",
            "groovy",
            "guile",
            "iex",
            "ipython",
            "irb",
            "java",
            "jjs",
            "jruby",
            "jshell",
            "julia",
            "kotlin",
            "lua",
            "luajit",
            "m4",
            "mono",
            "node",
            "nodejs",
            "nu",
            "ocaml",
            "octave",
            "osascript",
            "perl",
            "php",
            "pry",
            "pwsh",
            "powershell",
            "py",
            "pypy",
            "python",
            "qjs",
            "racket",
            "raku",
            "ruby",
            "runghc",
            "runhaskell",
            "sbcl",
            "scala",
            "scheme",
            "swift",
            "swipl",
            "tclsh",
            "tcsh",
            "ts-node",
            "tsx",
            "wish",
            "xonsh",
        ],
        ..CODE
    },
    // Databases' and calculators' consoles, which start shells or write files.
    Program {
        names: &["bc", "dc", "gnuplot"],
        runs: Some("the commands that it is given, some of which start programs or load code"),
        ..CODE
    },
    // Programs that load plugins and configuration, or start what an option names.
    Program {
        names: &[
            "bat", "c++", "cc", "clang", "clang++", "cpp", "eslint", "g++", "gcc", "gfortran", "gradlew", "hg", "ip", "jest", "ld", "ldd",
            "mocha", "mvnw", "pager", "prettier", "rollup", "svn", "tcpdump", "tsc", "tshark", "vite", "vitest", "webpack",
        ],
        runs: Some("the plugins, wrappers and configuration that its options or the project name"),
        ..CODE
    },
    // Editors and debuggers.
    Program { names: &["kak"], runs: Some("the commands that it is given, some of which start programs"), ..CODE },
];
