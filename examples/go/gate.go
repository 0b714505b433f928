package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"
)

// answerBytesMax bounds what is read of an answer.
const answerBytesMax = 1 << 20

// eventIDBytesMax is how long the contract allows the id of an event to be.
const eventIDBytesMax = 128

// content is what tells two events of one type and one call id apart.
var content = []string{"failed", "response", "result", "tool_input", "tool_name"}

// pause is how long to wait before the same event is asked about again.
const pause = 50 * time.Millisecond

// Verdict is what an agent acts on. DecidedBy is "client" where the gate gave no verdict.
type Verdict struct {
	Action          string `json:"action"`
	AllowsExecution bool   `json:"allows_execution"`
	ShouldHalt      bool   `json:"should_halt"`
	Code            string `json:"code"`
	Message         string `json:"message"`
	DecidedBy       string `json:"decided_by"`
	SyntheticResult string `json:"synthetic_result"`
	Guidance        string `json:"guidance"`
	EventID         string `json:"event_id"`
	ThreadID        string `json:"thread_id"`
	TypeOfTheEvent  string `json:"type"`
}

// TextForAgent is what the agent reads in place of the result of a call that may not run.
func (v Verdict) TextForAgent() string {
	if v.SyntheticResult != "" {
		return v.SyntheticResult
	}
	return v.Message
}

// Gate asks a server of Tollgate. It may be used from several goroutines.
type Gate struct {
	url, token string
	deadline   time.Duration
	client     *http.Client
}

// NewGate returns a gate at a URL. An empty token is not sent. The deadline bounds each question.
func NewGate(url, token string, deadline time.Duration) *Gate {
	// The proxy variables of the environment are not used: they must not decide who reads what agents do.
	return &Gate{strings.TrimRight(url, "/"), token, deadline, &http.Client{
		Transport:     &http.Transport{},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// ToolCall asks before a tool runs. The arguments are the JSON text as the model wrote it. The response is the id of the response that asks for
// the call; without it, equal calls of two responses under one id count once.
func (g *Gate) ToolCall(thread, turn, response, call, tool string, arguments json.RawMessage) Verdict {
	if !isWhole(arguments) {
		return denied("arguments_unsendable", "arguments: found no JSON, or half a character; write whole characters")
	}
	return g.ask(turn, ofResponse(response, call+"/call"), map[string]any{"type": "tool_call", "thread_id": thread, "tool_call_id": call, "tool_name": tool, "tool_input": arguments})
}

// ToolResult tells what came of a call that ran.
func (g *Gate) ToolResult(thread, turn, response, call, tool, result string, failed bool) Verdict {
	return g.ask(turn, ofResponse(response, call+"/result"), map[string]any{"type": "tool_result", "thread_id": thread, "tool_call_id": call, "tool_name": tool, "result": result, "failed": failed})
}

// ModelResponse tells of a response, as its provider sent it, before its first call.
func (g *Gate) ModelResponse(thread, turn, id string, response json.RawMessage) Verdict {
	return g.ask(turn, id+"/response", map[string]any{"type": "model_response", "thread_id": thread, "response": response})
}

// ask sends an event, whose id is the same if it is asked about again.
func (g *Gate) ask(turn, id string, event map[string]any) Verdict {
	name := shortened(turn + "/" + id)
	event["event_id"] = name
	if turn != "" {
		event["turn_id"] = turn
	}
	body, err := json.Marshal(event)
	if err != nil {
		return denied("event_unsendable", "event: "+err.Error())
	}
	// The deadline bounds all tries together.
	limit, cancel := context.WithTimeout(context.Background(), g.deadline)
	defer cancel()
	for {
		status, text, err := g.post(limit, body)
		if err != nil {
			return unreached(err)
		}
		if status != http.StatusGatewayTimeout {
			verdict := read(status, text, event)
			if verdict.Code != "event_id_taken" || status != http.StatusConflict || event["event_id"] != name {
				return verdict
			}
			// Some servers of models give the same id to several calls of a turn. The event is asked about once more, under an id of its own.
			event["event_id"] = apart(name, event)
			if body, err = json.Marshal(event); err != nil {
				return denied("event_unsendable", "event: "+err.Error())
			}
			continue
		}
		// The gate had no verdict in time. The same event gets the same verdict, whenever the verdict comes.
		select {
		case <-limit.Done():
			return denied("deadline_exceeded", "the gate had no verdict in time")
		case <-time.After(pause):
		}
	}
}

// ofResponse puts the id of a response before the name of an event of its call, if there is one.
func ofResponse(response, name string) string {
	if response == "" {
		return name
	}
	return response + "/" + name
}

// apart returns an id that follows from an event's content, so that a repeat of the event gets the same id.
func apart(name string, event map[string]any) string {
	told := map[string]any{}
	for _, member := range content {
		if value, is := event[member]; is {
			told[member] = value
		}
	}
	text, _ := json.Marshal(told) // It is a part of what was written before.
	return shortened(fmt.Sprintf("%s/%.8x", name, sha256.Sum256(text)))
}

// shortened returns an id as it is, or, if it is too long, its hash with its last part behind it.
func shortened(id string) string {
	if len(id) <= eventIDBytesMax {
		return id
	}
	return fmt.Sprintf("%x%s", sha256.Sum256([]byte(id)), id[strings.LastIndex(id, "/"):])
}

// post sends an event once.
func (g *Gate) post(limit context.Context, body []byte) (int, []byte, error) {
	request, err := http.NewRequestWithContext(limit, http.MethodPost, g.url+"/v1/events", bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	if g.token != "" {
		request.Header.Set("Authorization", "Bearer "+g.token)
	}
	answer, err := g.client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, answerBytesMax))
	return answer.StatusCode, text, err
}

// unreached is the denial where no answer came.
func unreached(err error) Verdict {
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return denied("deadline_exceeded", "the gate gave no answer in time")
	}
	return denied("gate_unreachable", "the gate cannot be reached")
}

func denied(code, message string) Verdict {
	return Verdict{Action: "block", Code: code, Message: message, DecidedBy: "client"}
}

// read takes an answer for a verdict only if it is the verdict of this event and can be read in one way.
func read(status int, text []byte, event map[string]any) Verdict {
	unreadable := denied("verdict_unreadable", fmt.Sprintf("the answer (status %d) is no verdict of this event", status))
	isBusy := status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests
	if isBusy {
		unreadable = denied("gate_overloaded", "the gate takes no event now")
	}
	if !isObject(text) {
		return unreadable
	}
	var verdict Verdict
	if json.Unmarshal(text, &verdict) != nil {
		return unreadable
	}
	if (isBusy || status >= 400 && status < 500) && verdict.Action == "block" && verdict.Code != "" {
		return denied(verdict.Code, verdict.Message)
	}
	runs := verdict.Action == "allow" || verdict.Action == "warn"
	isKnown := runs || verdict.Action == "block" || verdict.Action == "halt" || verdict.Action == "suppress"
	isOfEvent := verdict.EventID == event["event_id"] && verdict.ThreadID == event["thread_id"] && verdict.TypeOfTheEvent == event["type"]
	if status != http.StatusOK || !isKnown || !isOfEvent || runs != verdict.AllowsExecution || verdict.Code == "" {
		return unreadable
	}
	return verdict
}

// isObject says whether a text is one JSON object whose keys are written once: encoding/json takes the last of two, in any case.
func isObject(text []byte) bool {
	decoder := json.NewDecoder(bytes.NewReader(text))
	if start, err := decoder.Token(); err != nil || start != json.Delim('{') {
		return false
	}
	seen := map[string]bool{}
	for decoder.More() {
		key, err := decoder.Token()
		name, isName := key.(string)
		var value json.RawMessage
		if err != nil || !isName || seen[strings.ToLower(name)] || decoder.Decode(&value) != nil {
			return false
		}
		seen[strings.ToLower(name)] = true
	}
	_, err := decoder.Token()
	_, end := decoder.Token()
	return err == nil && end == io.EOF
}

// isWhole says whether a JSON text has whole characters only: for others encoding/json puts U+FFFD.
func isWhole(text []byte) bool {
	var value any
	if !utf8.Valid(text) || json.Unmarshal(text, &value) != nil {
		return false
	}
	decoded, err := json.Marshal(value)
	return err == nil && !bytes.ContainsRune(decoded, utf8.RuneError)
}
