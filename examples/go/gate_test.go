package main

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// conformanceAnswer is what the gate of a case answers.
type conformanceAnswer struct {
	Fault   string
	Status  int
	Headers map[string]string
	Body    json.RawMessage
	Text    *string
}

// conformanceCall is what a case asks for.
type conformanceCall struct {
	Method     string
	Thread     string          `json:"thread_id"`
	Tool       string          `json:"tool_name"`
	Arguments  json.RawMessage `json:"tool_input"`
	Text       string          `json:"arguments"`
	Call       string          `json:"tool_call_id"`
	Result     string
	Failed     bool
	Response   json.RawMessage
	ResponseID string `json:"response_id"`
}

// conformanceCase is a case of clients/conformance, whose README says what each member means.
type conformanceCase struct {
	Name      string
	OnFailure string `json:"on_failure"`
	Call      conformanceCall
	Answer    conformanceAnswer
	Answers   []conformanceAnswer
	Sent      json.RawMessage
	Expect    map[string]any
}

func ask(gate *Gate, call conformanceCall) Verdict {
	if call.Text != "" {
		call.Arguments = json.RawMessage(call.Text)
	}
	switch call.Method {
	case "tool_call":
		return gate.ToolCall(call.Thread, "", call.ResponseID, call.Call, call.Tool, call.Arguments)
	case "tool_result":
		return gate.ToolResult(call.Thread, "", call.ResponseID, call.Call, call.Tool, call.Result, call.Failed)
	default:
		return gate.ModelResponse(call.Thread, "", call.ResponseID, call.Response)
	}
}

// serve answers as a case says, and keeps the event that came.
func serve(t *testing.T, c conformanceCase) (string, *any) {
	var sent any
	var came atomic.Int32
	released := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		body, _ := io.ReadAll(request.Body)
		json.Unmarshal(body, &sent)
		answer := c.Answer
		// The last answer stands for all that follow.
		if asked := int(came.Add(1)); asked <= len(c.Answers) {
			answer = c.Answers[asked-1]
		} else if len(c.Answers) > 0 {
			answer = c.Answers[len(c.Answers)-1]
		}
		switch answer.Fault {
		case "silent":
			<-released
		case "cut":
			panic(http.ErrAbortHandler)
		}
		for name, value := range answer.Headers {
			writer.Header().Set(name, value)
		}
		writer.WriteHeader(answer.Status)
		text := string(answer.Body)
		if answer.Text != nil {
			text = *answer.Text
		}
		id, _ := sent.(map[string]any)["event_id"].(string)
		io.WriteString(writer, strings.ReplaceAll(text, "{event_id}", id))
	}))
	t.Cleanup(func() { close(released); server.Close() })
	if c.Answer.Fault == "refused" {
		server.Listener.Close()
	}
	return server.URL, &sent
}

func object(text string) (value map[string]any) {
	json.Unmarshal([]byte(text), &value)
	return value
}

func TestConformance(t *testing.T) {
	asked := 0
	for _, file := range []string{"verdicts", "faults"} {
		text, err := os.ReadFile("../../clients/conformance/" + file + ".json")
		var cases []conformanceCase
		if err != nil || json.Unmarshal(text, &cases) != nil {
			t.Fatal("clients/conformance cannot be read: ", err)
		}
		for _, c := range cases {
			if c.OnFailure == "open" && c.Expect["allows_execution"] == true {
				continue // This program never fails open.
			}
			asked++
			t.Run(c.Name, func(t *testing.T) {
				url, sent := serve(t, c)
				deadline := 10 * time.Second
				if c.Answer.Fault == "silent" || c.Answer.Status == http.StatusGatewayTimeout {
					deadline = 200 * time.Millisecond
				}
				verdict, _ := json.Marshal(ask(NewGate(url, "", deadline), c.Call))
				var found, wanted map[string]any
				json.Unmarshal(verdict, &found)
				for name, value := range c.Expect {
					if !reflect.DeepEqual(found[name], value) {
						t.Errorf("%s: found %v, expected %v", name, found[name], value)
					}
				}
				json.Unmarshal(c.Sent, &wanted)
				if text, is := wanted["arguments"].(string); is {
					// This program sends a text of arguments as the object in it.
					delete(wanted, "arguments")
					wanted["tool_input"] = object(text)
				}
				if wanted != nil && !reflect.DeepEqual(*sent, any(wanted)) {
					t.Errorf("sent %v, expected %v", *sent, wanted)
				}
				if string(c.Sent) == "null" && *sent != nil {
					t.Errorf("sent %v, expected nothing", *sent)
				}
			})
		}
	}
	if asked < 25 {
		t.Errorf("%d cases were asked", asked)
	}
}

func TestIDs(t *testing.T) {
	text, err := os.ReadFile("../../clients/conformance/ids.json")
	var cases []struct {
		Name    string
		Calls   []conformanceCall
		Decided []string
	}
	if err != nil || json.Unmarshal(text, &cases) != nil || len(cases) < 12 {
		t.Fatal("clients/conformance/ids.json cannot be read: ", err)
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			known := map[string]string{}
			server := httptest.NewServer(http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
				body, _ := io.ReadAll(request.Body)
				event := object(string(body))
				id := event["event_id"].(string)
				if earlier, is := known[id]; is && earlier != string(body) {
					writer.WriteHeader(http.StatusConflict)
					io.WriteString(writer, `{"action":"block","allows_execution":false,"code":"event_id_taken","message":"m"}`)
					return
				}
				known[id] = string(body)
				json.NewEncoder(writer).Encode(map[string]any{"event_id": id, "thread_id": event["thread_id"], "type": event["type"], "action": "allow", "allows_execution": true, "code": "allow"})
			}))
			defer server.Close()
			gate := NewGate(server.URL, "", 10*time.Second)
			for at, call := range c.Calls {
				verdict := ask(gate, call)
				if call.Text != "" {
					continue // This program sends a text of arguments as the object in it.
				}
				if !verdict.AllowsExecution || verdict.EventID != c.Decided[at] {
					t.Errorf("call %d: %v, expected %s", at, verdict, c.Decided[at])
				}
			}
		})
	}
}

func TestAnswersThatReadTwoWays(t *testing.T) {
	event := map[string]any{"event_id": "/c/call", "thread_id": "t", "type": "tool_call"}
	allow := `{"event_id":"/c/call","thread_id":"t","type":"tool_call","action":"allow","allows_execution":true,"code":"allow"`
	if !read(200, []byte(allow+"}"), event).AllowsExecution {
		t.Error("an allowance is read")
	}
	for _, rest := range []string{`,"action":"allow"}`, `,"Action":"allow"}`, `}{}`, ``, `} x`} {
		if verdict := read(200, []byte(allow+rest), event); verdict.Code != "verdict_unreadable" {
			t.Errorf("%s: %v", rest, verdict)
		}
	}
}

func TestThePageShowsThisProgram(t *testing.T) {
	page, _ := os.ReadFile("../../docs/go-and-java.md")
	program, _ := os.ReadFile("main.go")
	_, body, found := strings.Cut(string(program), "// run asks")
	if lines := strings.Count(string(page), "\n"); !found || !strings.Contains(string(page), "// run asks"+body) || lines > 85 {
		t.Errorf("docs/go-and-java.md (%d lines) shows another program", lines)
	}
}

// TestTheProgramAsksARealGate runs the program against `tollgate dev`, which denies the tool bash.
func TestTheProgramAsksARealGate(t *testing.T) {
	program := os.Getenv("TOLLGATE_BIN")
	if program == "" {
		t.Fatal("TOLLGATE_BIN names no program: build tollgate, and set it")
	}
	free, _ := net.Listen("tcp", "127.0.0.1:0")
	address := free.Addr().String()
	free.Close()
	dev := exec.Command(program, "dev", "--http", address, "--port", "0")
	if err := dev.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { dev.Process.Kill(); dev.Wait() }()
	gate := NewGate("http://"+address, "", 30*time.Second)
	// Until the gate is ready there is no verdict of its own.
	for gate.ToolCall("ready", "", "", "c", "ls", json.RawMessage("{}")).DecidedBy == "client" {
		time.Sleep(50 * time.Millisecond)
	}
	output, err := exec.Command("go", "run", ".", "http://"+address).Output()
	lines := strings.Split(string(output), "\n")
	if err != nil || len(lines) != 3 || lines[0] != "README.md" || !strings.Contains(lines[1], "oap.tool_not_allowed") {
		t.Errorf("%v: %q", err, output)
	}
}
