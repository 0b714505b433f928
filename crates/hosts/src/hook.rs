//! Hooks: what the wires of coding agents have in common. A host is described by its dialects and by how it is answered.

use tollgate_json::Parser;
use tollgate_passport::{AgentHost, DEFAULT_TOOL_CAPABILITIES, HOSTS, Pack, ignores_folder};

use crate::body::{Arguments, Fault, Members};
use crate::event::{Call, Place, derived_call_id, event_id, mcp_tool};
use crate::ruling::{Ruling, ok};
use crate::{Answer, Event, Question, Request, Wire};

/// A host of hooks.
#[derive(Debug)]
pub(crate) struct Hook {
    pub name: &'static str,
    /// The dialects, each known by the member that names the event. A dialect without such a member comes last.
    pub dialects: &'static [Dialect],
    /// Writes the answer to an event.
    pub answer: fn(&Occasion, &Ruling) -> serde_json::Value,
    /// Writes the denial of a request that cannot be read.
    pub refuse: fn(&Occasion, &str) -> serde_json::Value,
}

/// The names that a host has for its events and their members.
#[derive(Debug)]
pub(crate) struct Dialect {
    /// The member that names the event; without it the end of the path names it.
    pub event: Option<&'static str>,
    /// What each event is to the gate. Events that are the same to it stand in one text, with spaces between them.
    pub events: &'static [(&'static str, Moment)],
    pub session: &'static str,
    /// The member that names the turn on events.
    pub turn: Option<&'static str>,
    /// The member of an event's id that changes with every turn, where it is no turn of the gate.
    pub turn_of_ids: Option<&'static str>,
    pub agent: Option<&'static str>,
    pub tool: &'static str,
    pub arguments: &'static str,
    /// The member that names the server of a tool of MCP and the server's own name of the tool, if the host tells them.
    pub server: Option<&'static str>,
    pub call: CallId,
}

/// How a host tells calls apart.
#[derive(Debug, Clone, Copy)]
pub(crate) enum CallId {
    /// By a member.
    Member(&'static str),
    /// Not at all. The member holds the time of the event, which tells a repeated call from a repeated request.
    Time(&'static str),
}

/// What an event of a host is to the gate.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Moment {
    /// A call that may run or not.
    Call,
    /// The end of a call. `None` stands for a call that has no result.
    Result(fn(&Members<'_>) -> Result<Option<Finished>, Fault>),
    TurnStart,
    /// The start of a subagent, whose id has to be there.
    ChildStart,
    /// Nothing that the gate decides.
    Nothing,
    /// An event that asks about a call which another event asks about too: the text says which.
    Double(&'static str),
}

/// The end of a turn, as the host sees it. Another hook may send the agent on under the same prompt, and the limits of the turn still hold
/// then. So the turn ends where the next turn starts.
pub(crate) const END: Moment = Moment::Nothing;

/// The end of a call.
#[derive(Debug)]
pub(crate) struct Finished {
    /// Whether the call failed; without it the gate classifies the result.
    pub failed: Option<bool>,
    pub result: Option<String>,
}

/// What an answer is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Occasion {
    /// The event, as the host spells it; empty where it is not known.
    pub event: &'static str,
    pub kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Call,
    Result,
    Turn,
    Nothing,
    /// The event could not be read.
    Unknown,
}

impl Moment {
    fn kind(self) -> Kind {
        match self {
            Self::Call | Self::Double(_) => Kind::Call,
            Self::Result(_) => Kind::Result,
            Self::TurnStart | Self::ChildStart => Kind::Turn,
            Self::Nothing => Kind::Nothing,
        }
    }
}

impl Wire for Hook {
    fn name(&self) -> &'static str {
        self.name
    }

    fn read(&self, request: &Request<'_>) -> Result<Question, Answer> {
        let mut occasion = Occasion { event: "", kind: Kind::Unknown };
        let events = self.events(request, &mut occasion).map_err(|fault| ok((self.refuse)(&occasion, &fault.to_string())))?;
        let answer = self.answer;
        let expected = if matches!(occasion.kind, Kind::Call | Kind::Result) { events.len() } else { 0 };
        Ok(Question { events, answer: Box::new(move |outcome| ok(answer(&occasion, &Ruling::of(outcome, expected)))) })
    }
}

impl Hook {
    /// Returns the events of a request, and notes what the request is about as soon as it is known.
    fn events(&self, request: &Request<'_>, occasion: &mut Occasion) -> Result<Vec<Event>, Fault> {
        let mut parser = Parser::new();
        let body = Members::parse(&mut parser, request.body)?;
        let (dialect, event, moment) = self.event(&body, request.path)?;
        *occasion = Occasion { event, kind: moment.kind() };
        let place = || dialect.place(&body);
        match moment {
            Moment::Call => dialect.call_event(self.name, &body, &place()?, None).map(|event| vec![event]),
            Moment::Result(read) => match read(&body)? {
                Some(finished) => dialect.call_event(self.name, &body, &place()?, Some(finished)).map(|event| vec![event]),
                None => Ok(Vec::new()),
            },
            Moment::TurnStart => dialect.turn_start(&body, &place()?).map(|event| vec![event]),
            Moment::ChildStart => {
                dialect.agent.map_or(Ok(()), |agent| body.id(agent).map(drop))?;
                dialect.turn_start(&body, &place()?).map(|event| vec![event])
            }
            Moment::Nothing => Ok(Vec::new()),
            Moment::Double(fix) => Err(Fault::new("hook_event_name", format!("found {event}, which asks about a call a second time"), fix)),
        }
    }

    fn event(&self, body: &Members<'_>, path: &str) -> Result<(&'static Dialect, &'static str, Moment), Fault> {
        let named =
            self.dialects.iter().find_map(|dialect| dialect.event.filter(|member| body.has(member)).map(|member| (dialect, member)));
        let by_path = self.dialects.iter().find(|dialect| dialect.event.is_none());
        let (dialect, member, name) = match (named, by_path) {
            (Some((dialect, member)), _) if path.is_empty() => (dialect, member, body.text(member)?),
            (None, Some(dialect)) if !path.is_empty() => (dialect, "path", path.to_owned()),
            (None, _) if path.is_empty() => {
                let member = self.dialects.iter().find_map(|dialect| dialect.event).unwrap_or("event");
                let fix = match by_path {
                    Some(_) => "write the event's name in PascalCase in the settings, or at the end of the URL".to_owned(),
                    None => format!("send what {} sends, or ask as the host that sends this (`--host`, or the path)", self.name),
                };
                return Err(Fault::new(member, "is missing", fix));
            }
            _ => return Err(Fault::new("path", "found more than the host's name", format!("post to /v1/hooks/{}", self.name))),
        };
        let known = dialect.events.iter().find_map(|(events, moment)| Some((events.split(' ').find(|event| *event == name)?, *moment)));
        known.map(|(event, moment)| (dialect, event, moment)).ok_or_else(|| {
            let fix = format!("register only the events that `tollgate hook --print-settings {}` prints", self.name);
            Fault::new(member, "found an event that Tollgate does not know", fix)
        })
    }
}

impl Dialect {
    fn place(&self, body: &Members<'_>) -> Result<Place, Fault> {
        let child = self.agent.map_or(Ok(None), |agent| body.optional_id(agent))?;
        let mut place = Place::new(&body.id(self.session)?, child.as_deref())?;
        place.turn = self.turn.map_or(Ok(None), |turn| body.optional_text(turn))?;
        Ok(place)
    }

    /// Returns the part of event ids that says which turn this is, or which moment where the host has no turns.
    fn turn_of_ids(&self, body: &Members<'_>) -> Result<Option<String>, Fault> {
        match (self.turn.or(self.turn_of_ids), self.call) {
            (Some(turn), _) => body.optional_text(turn),
            (None, CallId::Time(time)) => moment_text(body, time).map(Some),
            (None, CallId::Member(_)) => Ok(None),
        }
    }

    fn turn_start(&self, body: &Members<'_>, place: &Place) -> Result<Event, Fault> {
        let id = self.turn_of_ids(body)?.map(|turn| event_id(&[&turn, "start"]));
        Ok(place.event("turn_start", id))
    }

    fn call_event(&self, host: &str, body: &Members<'_>, place: &Place, finished: Option<Finished>) -> Result<Event, Fault> {
        let tool = self.tool_of(body)?;
        let arguments = match self.call {
            CallId::Member(_) => body.arguments(self.arguments)?,
            // Such a host may write the arguments as a text.
            CallId::Time(_) => body.arguments_or_text(self.arguments)?,
        };
        let arguments = self.with_folder(host, body, &tool, arguments)?;
        let id = self.call_id(body, place, &tool, &arguments)?;
        let turn = self.turn_of_ids(body)?;
        let call = Call { id, tool, arguments };
        Ok(match finished {
            Some(Finished { result, failed }) => call.answered(place, turn.as_deref(), result, failed),
            None => call.asked(place, turn.as_deref()),
        })
    }

    /// Returns the tool of a call. A tool of an MCP server is named by its server and its own name, where the host tells both.
    fn tool_of(&self, body: &Members<'_>) -> Result<String, Fault> {
        match self.server.filter(|member| body.get(member).is_some()) {
            Some(member) => {
                let server = body.object(member)?;
                mcp_tool(&server.text("server_name")?, &server.text("tool_name")?).ok_or_else(|| {
                    let problem = "found a name with __ in it or _ at its end, which runs into the tool's name";
                    Fault::new(format!("{member}.server_name"), problem, "give the server another name in the host's settings")
                })
            }
            None => body.text(self.tool),
        }
    }

    /// Returns the arguments of a call with the host's working folder, from which a tool for files sees relative paths, and searches without a
    /// path. A folder that the model has written as an argument that the tool does not have is refused: the host looks at no such argument.
    fn with_folder(&self, host: &str, body: &Members<'_>, tool: &str, arguments: Arguments) -> Result<Arguments, Fault> {
        let folder = body.optional_text("cwd")?;
        let known = AgentHost::of(host);
        let is_ignored = |name: &str, said: Option<&str>| {
            let is_ignored = known.is_some_and(|known| ignores_folder(known, tool, name));
            is_ignored && (said.is_none() || said != folder.as_deref())
        };
        if arguments.has_member(&is_ignored) {
            let fix = format!("leave the argument out: {host} runs the tool in its own working folder");
            return Err(Fault::new(self.arguments, "found a working folder that this tool takes from nobody", fix));
        }
        Ok(match folder.filter(|_| works_on_files(tool)) {
            Some(folder) => arguments.or_text("cwd", &folder),
            None => arguments,
        })
    }

    fn call_id(&self, body: &Members<'_>, place: &Place, tool: &str, arguments: &Arguments) -> Result<String, Fault> {
        match self.call {
            CallId::Member(member) => body.text(member),
            CallId::Time(member) => Ok(derived_call_id(place.thread(), tool, arguments, &moment_text(body, member)?)),
        }
    }
}

/// Returns whether passports know a tool as a tool for files, whichever host names it so.
fn works_on_files(tool: &str) -> bool {
    let is_for_files = |capability| [Pack::FileRead, Pack::FileWrite].iter().any(|pack| pack.capability() == capability);
    let mut known = DEFAULT_TOOL_CAPABILITIES.into_iter().chain(HOSTS.into_iter().flat_map(AgentHost::tools));
    known.any(|(name, capability)| name == tool && is_for_files(capability))
}

/// Returns a time that only tells moments apart: a text, or a number as it is written.
fn moment_text(body: &Members<'_>, member: &str) -> Result<String, Fault> {
    let value = body.required(member)?;
    match value.shape() {
        tollgate_json::Shape::Number => Ok(String::from_utf8_lossy(value.source()).into_owned()),
        _ => body.text(member),
    }
}
