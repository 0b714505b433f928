//! Generates traffic without an end, the same for the same seed: a few hundred agents at a time, some far busier than others.
//!
//! Agents do not react to verdicts. Turns are long, so that most verdicts depend on what a thread did minutes ago.

use std::collections::VecDeque;

use serde_json::{Value, json};

use tollgate_testkit::{Outgoing, Random};

/// Threads that are live at once.
const AGENTS: usize = 300;
/// Event time from one event to the next, in milliseconds. At 400 events a second it runs some six times as fast as the real clock.
const STEP_MS: u64 = 16;
/// Added to every rank, so that the busiest agents differ little and no partition gets most of the traffic.
const RANK_OFFSET: usize = 5;
/// How many of an agent's events can be sent again.
const HISTORY: usize = 12;
/// The tools that agents call. The last one is denied by policy.
const TOOLS: [&str; 8] = ["terminal", "read_file", "patch", "web_search", "write_file", "search_files", "execute_code", "format_disk"];
/// The header that distinguishes events, repeats of the same event too. Verdicts echo it.
pub(super) const SEQUENCE: &str = "correlation_id";
/// The beginning of the sequence of a record that is no event.
pub(super) const UNREADABLE: &str = "unreadable-";

/// The generator of the traffic.
pub(super) struct Traffic {
    random: Random,
    agents: Vec<Agent>,
    /// The summed weights of the agents.
    weights: Vec<usize>,
    sent: u64,
    threads: u64,
}

/// An agent, which is one thread.
struct Agent {
    thread: String,
    /// Whether its host names its turns.
    names_turns: bool,
    turn: u64,
    turns_left: usize,
    steps_left: usize,
    /// Decides the results of the turn's calls.
    luck: u64,
    events: u64,
    calls: u64,
    due: VecDeque<Value>,
    sent: VecDeque<String>,
    sleeps_until: u64,
}

impl Traffic {
    pub(super) fn new(seed: u64) -> Self {
        let weight = |rank: usize| 1_000_000 / (rank + RANK_OFFSET);
        let weights = (0..AGENTS).scan(0, |sum, rank| {
            *sum += weight(rank);
            Some(*sum)
        });
        let mut traffic = Self { random: Random::new(seed), agents: Vec::new(), weights: weights.collect(), sent: 0, threads: 0 };
        for _ in 0..AGENTS {
            let agent = traffic.new_agent();
            traffic.agents.push(agent);
        }
        traffic
    }

    fn new_agent(&mut self) -> Agent {
        self.threads += 1;
        Agent {
            thread: format!("agent-{:06}", self.threads),
            names_turns: self.random.below(4) != 0,
            turn: 0,
            turns_left: 2 + self.random.below(5),
            steps_left: 0,
            luck: 0,
            events: 0,
            calls: 0,
            due: VecDeque::new(),
            sent: VecDeque::new(),
            sleeps_until: 0,
        }
    }

    /// Returns the next event. Its sequence ends in its number, from 0.
    pub(super) fn next(&mut self) -> Outgoing {
        let number = self.sent;
        self.sent += 1;
        let at = self.pick();
        if self.agents[at].turns_left == 0 {
            self.agents[at] = self.new_agent();
        }
        let timestamp = self.timestamp();
        let (random, agent) = (&mut self.random, &mut self.agents[at]);
        match random.below(1_000) {
            // The same event comes again, as from a host that was not answered in time.
            0..25 if !agent.sent.is_empty() => {
                let again = agent.sent[random.below(agent.sent.len())].clone();
                Outgoing::new(agent.thread.as_str(), again).header(SEQUENCE, number.to_string())
            }
            25..33 => {
                let (key, value) = agent.unreadable(random, &timestamp);
                let partition = key.is_none().then(|| random.below(super::run::PARTITIONS as usize) as i32);
                Outgoing { key, value, partition, ..Outgoing::default() }.header(SEQUENCE, format!("{UNREADABLE}{number}"))
            }
            _ => {
                let mut event = agent.next(random, self.sent);
                event["timestamp"] = json!(timestamp);
                let event = event.to_string();
                if agent.sent.len() == HISTORY {
                    agent.sent.pop_front();
                }
                agent.sent.push_back(event.clone());
                Outgoing::new(agent.thread.as_str(), event).header(SEQUENCE, number.to_string())
            }
        }
    }

    /// Picks an agent that is awake.
    fn pick(&mut self) -> usize {
        loop {
            let point = self.random.below(self.weights[AGENTS - 1]);
            let at = self.weights.partition_point(|sum| *sum <= point);
            if self.agents[at].sleeps_until <= self.sent {
                return at;
            }
        }
    }

    /// Returns the next timestamp. Time goes on by steps; now and then a host's clock is late, and seldom far ahead.
    fn timestamp(&mut self) -> String {
        let now_ms = self.sent * STEP_MS + 3_600_000;
        let ms = match self.random.below(1_000) {
            0..30 => now_ms - self.random.below(20_000) as u64,
            30 => now_ms + 600_000,
            _ => now_ms,
        };
        let (seconds, ms) = (ms / 1_000, ms % 1_000);
        let (day, hour, minute, second) = (1 + seconds / 86_400 % 28, seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
        format!("2025-01-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
    }
}

impl Agent {
    /// Returns its next event, without a timestamp; `now` is how many events there were.
    fn next(&mut self, random: &mut Random, now: u64) -> Value {
        loop {
            if let Some(event) = self.due.pop_front() {
                return event;
            }
            if self.steps_left > 0 {
                self.steps_left -= 1;
                self.step(random);
            } else {
                self.change_turns(random, now);
            }
        }
    }

    /// Ends a turn, in one of the ways in which turns end, and begins another.
    fn change_turns(&mut self, random: &mut Random, now: u64) {
        if self.turn > 0 {
            match random.below(8) {
                // It is only left.
                0 => {}
                1 => self.push_bare(json!({"type": "thread_reset"})),
                2 => self.push(json!({"type": "thread_reset"})),
                _ => self.push(json!({"type": "turn_end"})),
            }
            self.turns_left -= 1;
            if random.below(6) == 0 {
                self.sleeps_until = now + random.below(12_000) as u64;
            }
        }
        self.turn += 1;
        self.luck = random.below(1 << 30) as u64;
        self.steps_left = 20 + random.below(150);
        // Some hosts name the next turn and leave its start out.
        if !(self.names_turns && random.below(6) == 0) {
            self.push(json!({"type": "turn_start"}));
        }
    }

    /// Does one thing of an agent's turn.
    fn step(&mut self, random: &mut Random) {
        match random.below(100) {
            0..7 => self.respond(random),
            7..9 => self.push(json!({"type": "model_response", "error": {"message": "overloaded", "code": 529}})),
            9..16 => self.call_several(random),
            // The call again under another event's id.
            16..20 => {
                let call = self.new_call(random);
                self.ask(&call, random);
                self.ask(&call, random);
                self.answer(&call, random);
            }
            // Its result again under another event's id.
            20..24 => {
                let call = self.new_call(random);
                self.ask(&call, random);
                self.answer(&call, random);
                self.answer(&call, random);
            }
            // A result without its call.
            24..26 => {
                let call = self.new_call(random);
                self.answer(&call, random);
            }
            26 => self.push(json!({"type": "thread_reset"})),
            27 => self.push(json!({"type": "turn_start"})),
            // A call of the turn before comes late.
            28..30 if self.turn > 1 => {
                let call = self.new_call(random);
                self.turn -= 1;
                self.ask(&call, random);
                self.turn += 1;
            }
            _ => {
                let call = self.new_call(random);
                self.ask(&call, random);
                self.answer(&call, random);
            }
        }
    }

    /// Has the model answer with calls, which the agent then makes; some answers were cut off, and their calls are made all the same.
    fn respond(&mut self, random: &mut Random) {
        let calls: Vec<Call> = (0..1 + random.below(3)).map(|_| self.new_call(random)).collect();
        let reason = ["tool_calls", "stop", "content_filter"][random.below(3)];
        let response = match random.below(3) {
            0 => {
                let content = calls.iter().map(|call| json!({"type": "tool_use", "id": call.id, "name": call.tool, "input": call.input}));
                let reason = if reason == "content_filter" { "refusal" } else { "tool_use" };
                json!({"role": "assistant", "stop_reason": reason, "content": content.collect::<Vec<_>>()})
            }
            _ => {
                let function = |call: &Call| json!({"name": call.tool, "arguments": call.input.to_string()});
                let asked = calls.iter().map(|call| json!({"id": call.id, "type": "function", "function": function(call)}));
                let message = json!({"role": "assistant", "content": "I will look.", "tool_calls": asked.collect::<Vec<_>>()});
                json!({"choices": [{"finish_reason": reason, "message": message}]})
            }
        };
        self.push(json!({"type": "model_response", "response": response}));
        for call in &calls {
            self.ask(call, random);
            if random.below(3) != 0 {
                self.answer(call, random);
            }
        }
    }

    /// Makes several calls at once, whose results come in any order.
    fn call_several(&mut self, random: &mut Random) {
        let mut calls: Vec<Call> = (0..2 + random.below(3)).map(|_| self.new_call(random)).collect();
        calls.iter().for_each(|call| self.ask(call, random));
        while !calls.is_empty() {
            let call = calls.swap_remove(random.below(calls.len()));
            self.answer(&call, random);
        }
    }

    /// Returns a new call. Some tools and arguments are far more popular than others, so that loops come about.
    fn new_call(&mut self, random: &mut Random) -> Call {
        self.calls += 1;
        let (tool, argument) = (random.below(TOOLS.len()).min(random.below(TOOLS.len())), random.below(6).min(random.below(6)));
        let input = json!({"path": format!("/srv/{}/{argument}", self.thread), "argument": argument, "note": "as the plan says"});
        // The results of a call depend on the turn and the call: some always fail, some always bring the same.
        let fate = Random::new(self.luck ^ ((tool as u64) << 40) ^ ((argument as u64) << 50)).below(10);
        Call { id: format!("call_{}", self.calls), tool: TOOLS[tool], input, fate }
    }

    fn ask(&mut self, call: &Call, random: &mut Random) {
        let mut event = json!({"type": "tool_call", "agent_id": "coder", "tool_call_id": call.id, "tool_name": call.tool});
        call.put_input(&mut event, random);
        self.push(event);
    }

    fn answer(&mut self, call: &Call, random: &mut Random) {
        let result = match (call.fate, call.tool) {
            (0..4, "terminal") => json!({"exit_code": 1, "output": "make: *** [all] Error 1"}).to_string(),
            (0..4, _) => "Error: it is not there".to_owned(),
            (4..7, _) => json!({"exit_code": 0, "output": "the same as ever"}).to_string(),
            _ => json!({"exit_code": 0, "output": format!("{} lines", random.below(1_000_000))}).to_string(),
        };
        let mut event = json!({"type": "tool_result", "tool_call_id": call.id, "tool_name": call.tool, "result": result});
        if random.below(3) != 0 {
            call.put_input(&mut event, random);
        }
        if random.below(10) == 0 {
            event["failed"] = json!(call.fate < 4);
        }
        self.push(event);
    }

    /// Adds an event of the running turn.
    fn push(&mut self, mut event: Value) {
        if self.names_turns {
            event["turn_id"] = json!(format!("turn-{}", self.turn));
        }
        self.push_bare(event);
    }

    /// Adds an event that names no turn.
    fn push_bare(&mut self, mut event: Value) {
        self.events += 1;
        event["thread_id"] = json!(self.thread);
        event["event_id"] = json!(format!("e{}", self.events));
        self.due.push_back(event);
    }

    /// Returns the key and value of a record that cannot be read. Without a key its thread is not known.
    fn unreadable(&mut self, random: &mut Random, timestamp: &str) -> (Option<Vec<u8>>, Option<Vec<u8>>) {
        self.events += 1;
        let key = Some(self.thread.clone().into_bytes());
        let mut event =
            json!({"type": "tool_call", "thread_id": self.thread, "event_id": format!("e{}", self.events), "timestamp": timestamp});
        event["tool_input"] = json!({});
        let broken = [("tool_name", json!(5)), ("type", json!("tool_cal")), ("timestamp", json!("yesterday")), ("turn_id", json!([]))];
        match random.below(7) {
            0 => (key, Some(b"{\"type\": \"tool_call\", ".to_vec())),
            1 => (None, Some(b"[1, 2, 3]".to_vec())),
            2 => (key, None),
            at => {
                let (field, value) = &broken[at - 3];
                event["tool_call_id"] = json!("c");
                event[*field] = value.clone();
                (key, Some(event.to_string().into_bytes()))
            }
        }
    }
}

/// A tool call.
struct Call {
    id: String,
    tool: &'static str,
    input: Value,
    /// Decides its results, out of ten.
    fate: usize,
}

impl Call {
    fn put_input(&self, event: &mut Value, random: &mut Random) {
        match random.below(4) {
            0 => event["arguments"] = json!(self.input.to_string()),
            _ => event["tool_input"] = self.input.clone(),
        }
    }
}
