//! Compound commands: those that all shells have, and those that only some have.

use super::grammar::Grammar;
use super::words::{GLOBS, NAMES, ODD_WORDS, PAYLOADS, PLAIN};

impl Grammar<'_> {
    /// Makes a compound command.
    pub(super) fn compound(&mut self, depth: usize) -> String {
        let mut text = if self.is_odd() {
            self.foreign(depth)
        } else {
            match self.rng.u8(..8) {
                0..3 => self.for_loop(depth),
                3 => format!("while {}; do {}; done", self.loop_condition(depth), self.list(depth)),
                4 => format!("if {}; then {}; fi", self.condition(depth), self.list(depth)),
                5 => format!("if {}; then {}; else {}; fi", self.condition(depth), self.list(depth), self.list(depth)),
                6 => format!("{{ {}; }}", self.list(depth)),
                _ => format!("({})", self.list(depth)),
            }
        };
        if self.one_in(6) {
            text.push(' ');
            text += &self.redirection();
        }
        text
    }

    fn condition(&mut self, depth: usize) -> String {
        if self.one_in(3) { self.list(depth) } else { self.simple() }
    }

    /// Makes the condition of a loop, which is false in most cases: a loop that does not end costs a second.
    fn loop_condition(&mut self, depth: usize) -> String {
        match self.rng.u8(..8) {
            0 => self.condition(depth),
            1 | 2 => format!("{} /none", self.program_and_options()),
            _ => format!("! {}", self.simple()),
        }
    }

    fn for_loop(&mut self, depth: usize) -> String {
        let name = if self.is_odd() { self.pick(NAMES) } else { self.pick(&["x", "f", "i", "file", "name"]) };
        let mut words = String::new();
        for _ in 0..=self.rng.usize(..3) {
            words.push(' ');
            let word = match self.rng.u8(..6) {
                0 => self.pick(GLOBS).to_owned(),
                1 => self.word(),
                _ => self.pick(PLAIN).to_owned(),
            };
            words += &word;
        }
        self.names.push(name.to_owned());
        let body = self.list(depth);
        self.names.pop();
        let end = if self.one_in(4) { "\n" } else { "; " };
        format!("for {name} in{words}{end}do {body}{end}done")
    }

    /// Makes a command that some shells do not have, or read otherwise.
    fn foreign(&mut self, depth: usize) -> String {
        let name = self.pick(NAMES);
        let odd = self.pick(ODD_WORDS);
        let payload = self.pick(PAYLOADS);
        let one = self.list(depth);
        match self.rng.u8(..40) {
            0 => format!("for {name} ({odd}) {one}"),
            1 => format!("for {name} in {odd}; {{ {one}; }}"),
            2 => format!("for {name}; do {one}; done"),
            3 => format!("for ((i=0;i<{odd};i++)); do {one}; done"),
            4 => format!("foreach {name} ({odd}) {one}; end"),
            5 => format!("repeat 2 {one}"),
            6 => format!("repeat {odd}; do {one}; done"),
            7 => format!("select {name} in {odd}; do {one}; done"),
            8 => format!("case {odd} in {odd}) {one};; esac"),
            9 => format!("case x in (x) {one} ;; *) {payload};& esac"),
            10 => format!("case x {{ x) {one};; }}"),
            11 => format!("if [[ {odd} ]] {{ {one} }}"),
            12 => format!("if ({one}) {{ {payload} }}"),
            13 => format!("while ({one}) {payload}"),
            14 => format!("{{ {one} }} always {{ {payload} }}"),
            15 => format!("{{ {one}; }} always {{ {payload}; }}"),
            16 => format!("function {name} {{ {payload}; }}; {name}"),
            17 => format!("{name}() {{ {payload}; }}; {one}"),
            18 => format!("ls() {payload}; ls"),
            19 => format!("() {{ {payload} }}"),
            20 => format!("coproc {one}"),
            21 => format!("coproc {name} {{ {one}; }}"),
            22 => format!("time {one}"),
            23 => format!("(( {odd} ))"),
            24 => format!("[[ {odd} -eq {odd} ]]"),
            25 => format!("[[ -v {odd} ]]"),
            26 => format!("[[ x =~ {odd} ]]"),
            27 => format!("[[ {odd} > {odd} ]]"),
            28 => format!("test -v {odd}"),
            29 => format!("[ {odd} -eq 1 ]"),
            30 => format!("test {odd} -nt {odd} -o -t {odd}"),
            31 => format!("alias ls={payload}\nls"),
            32 => format!("alias -g x='; {payload}'\n{one} x"),
            33 => format!("while read {name}; do {one}; done </work/words"),
            34 => format!("read {odd} <words"),
            35 => format!("printf -v {odd} x"),
            36 => format!("{one} &! {payload}"),
            37 => format!("! {{ {one} }}"),
            38 => format!("until {one}; do {one}; done"),
            _ => format!("((({one})))"),
        }
    }
}
