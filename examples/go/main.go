package main

import (
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// run asks about one call, runs the tool if it may run, and tells what came of it.
func run(gate *Gate, response, call, tool string, arguments json.RawMessage, runTool func() (string, error)) string {
	verdict := gate.ToolCall("thread-1", "turn-1", response, call, tool, arguments)
	if !verdict.AllowsExecution {
		return verdict.TextForAgent() // verdict.ShouldHalt: end the turn
	}
	result, err := runTool()
	if err != nil {
		result = err.Error()
	}
	told := gate.ToolResult("thread-1", "turn-1", response, call, tool, result, err != nil)
	return result + told.Guidance
}

func main() {
	gate := NewGate(os.Args[1], os.Getenv("TOLLGATE_TOKEN"), 5*time.Second)
	list := func() (string, error) { return "README.md", nil }
	fmt.Println(run(gate, "response-1", "call-1", "ls", json.RawMessage(`{"path": "."}`), list))
	fmt.Println(run(gate, "response-2", "call-2", "bash", json.RawMessage(`{"command": "ls"}`), list))
}
