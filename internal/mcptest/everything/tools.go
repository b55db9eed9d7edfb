package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/wire"
)

// tool is one that the suite asks for.
type tool struct {
	description string
	schema      any // of its arguments; nil for none
	call        func(c *call) exchange.Outcome
}

// pause is how far apart messages are that are to come one by one.
const pause = 50 * time.Millisecond

var tools map[string]*tool

func init() {
	tools = map[string]*tool{
		"test_simple_text":            says("a text", text("This is a simple text response for testing.")),
		"test_image_content":          says("an image", object{"content": list{image()}}),
		"test_audio_content":          says("a sound", object{"content": list{object{"type": "audio", "data": sound, "mimeType": "audio/wav"}}}),
		"test_embedded_resource":      says("a resource", object{"content": list{embedded("test://embedded-resource", "This is an embedded resource content.")}}),
		"test_multiple_content_types": says("several kinds", object{"content": list{object{"type": "text", "text": "Multiple content types test:"}, image(), embedded("test://mixed-content-resource", "mixed")}}),
		"test_error_handling": {description: "always fails", call: func(c *call) exchange.Outcome {
			return exchange.ToolError(c.r, "This tool intentionally returns an error for testing")
		}},
		"test_tool_with_logging": {description: "logs while it works", call: func(c *call) exchange.Outcome {
			for _, s := range []string{"Tool execution started", "Tool processing data", "Tool execution completed"} {
				c.log(s)
				time.Sleep(pause)
			}
			return result(c.r, text("logged"))
		}},
		"test_tool_with_progress": {description: "tells how far it is", call: func(c *call) exchange.Outcome {
			token, ok := wire.Get(c.r.Msg.Meta(), "progressToken")
			for _, n := range []int{0, 50, 100} {
				if ok {
					c.notify("notifications/progress", object{"progressToken": json.RawMessage(token), "progress": n, "total": 100})
				}
				time.Sleep(pause)
			}
			return result(c.r, text("done"))
		}},
		"test_sampling": {description: "asks the model", schema: texts("prompt"), call: func(c *call) exchange.Outcome {
			return c.say(func(a map[string][]byte) string {
				return "LLM response: " + wire.GetString(a["model"], "content", "text")
			},
				sample("model", c.argument("prompt"), 100))
		}},
		"test_elicitation": {description: "asks the person", schema: texts("message"), call: func(c *call) exchange.Outcome {
			return c.say(func(a map[string][]byte) string { return "User response: " + string(a["person"]) },
				form("person", c.argument("message"), object{
					"username": object{"type": "string", "description": "who"}, "email": object{"type": "string", "description": "where"},
				}, "username", "email"))
		}},
		"test_elicitation_sep1034_defaults": elicits("asks with values at hand", defaults),
		"test_elicitation_sep1330_enums":    elicits("asks for a choice", choices),
		"json_schema_2020_12_tool":          {description: "has a schema of 2020-12", schema: json.RawMessage(schema2020), call: echo},
		"test_x_mcp_header": {description: "has an argument that is mirrored into a header", schema: object{"type": "object", "properties": object{
			"region": object{"type": "string", "x-mcp-header": "Region"}, "level": object{"type": "integer"},
		}}, call: echo},
		"test_missing_capability": {description: "needs the model", call: func(c *call) exchange.Outcome {
			if exchange.Capability(c.r, "sampling") == nil {
				return c.missing("sampling")
			}
			return result(c.r, text("there is one"))
		}},
		"test_streaming_elicitation": elicits("asks the person on the stream of a call", object{"name": object{"type": "string"}}),
		"test_logging_tool": {description: "logs once", call: func(c *call) exchange.Outcome {
			c.log("test_logging_tool executed")
			return result(c.r, text("logged"))
		}},
		"test_trigger_tool_change":   changes("toolsListChanged", "notifications/tools/list_changed"),
		"test_trigger_prompt_change": changes("promptsListChanged", "notifications/prompts/list_changed"),

		"test_input_required_result_elicitation": {description: "asks for a name", call: func(c *call) exchange.Outcome {
			return c.say(func(a map[string][]byte) string {
				return "Hello, " + wire.GetString(a["user_name"], "content", "name") + "!"
			}, whatName("user_name", "What is your name?"))
		}},
		"test_input_required_result_sampling": {description: "asks the model for a capital", call: func(c *call) exchange.Outcome {
			return c.say(func(a map[string][]byte) string {
				return "Sampling response: " + wire.GetString(a["capital_question"], "content", "text")
			}, sample("capital_question", "What is the capital of France?", 100))
		}},
		"test_input_required_result_list_roots": {description: "asks for the roots", call: func(c *call) exchange.Outcome {
			return c.say(func(a map[string][]byte) string { return "Roots: " + string(a["client_roots"]) }, whichRoots("client_roots"))
		}},
		"test_input_required_result_request_state":  confirms,
		"test_input_required_result_tampered_state": confirms,
		"test_input_required_result_multiple_inputs": {description: "asks everybody at once", call: func(c *call) exchange.Outcome {
			return c.say(func(a map[string][]byte) string {
				return fmt.Sprintf("%s %s: %s", wire.GetString(a["greeting"], "content", "text"), wire.GetString(a["user_name"], "content", "name"), a["client_roots"])
			}, whatName("user_name", "What is your name?"), sample("greeting", "Generate a greeting", 50), whichRoots("client_roots"))
		}},
		"test_input_required_result_multi_round": {description: "asks twice", call: func(c *call) exchange.Outcome {
			first, o := c.ask(whatName("step1", "Step 1: What is your name?"))
			if o != nil {
				return *o
			}
			return c.say(func(a map[string][]byte) string {
				return wire.GetString(first["step1"], "content", "name") + " likes " + wire.GetString(a["step2"], "content", "color")
			}, form("step2", "Step 2: What is your favorite color?", object{"color": object{"type": "string"}}, "color"))
		}},
		"test_input_required_result_capabilities": {description: "asks whoever the client has", call: func(c *call) exchange.Outcome {
			var questions []question
			for _, q := range []question{whatName("user_name", "What is your name?"), sample("greeting", "Generate a greeting", 50), whichRoots("client_roots")} {
				if c.r.Caller.CanAsk(q.method) {
					questions = append(questions, q)
				}
			}
			return c.say(func(a map[string][]byte) string { return fmt.Sprintf("%d answers", len(a)) }, questions...)
		}},
	}
}

var confirms = &tool{description: "asks to confirm", call: func(c *call) exchange.Outcome {
	return c.say(func(map[string][]byte) string { return "state-ok" },
		form("confirm", "Please confirm", object{"ok": object{"type": "boolean"}}, "ok"))
}}

// say asks, and says something of the answers.
func (c *call) say(what func(answers map[string][]byte) string, questions ...question) exchange.Outcome {
	answers, o := c.ask(questions...)
	if o != nil {
		return *o
	}
	return result(c.r, text(what(answers)))
}

func whatName(key, message string) question {
	return form(key, message, object{"name": object{"type": "string"}}, "name")
}

// says is a tool that says always the same.
func says(description string, v object) *tool {
	return &tool{description: description, call: func(c *call) exchange.Outcome { return result(c.r, maps.Clone(v)) }}
}

// elicits is a tool that asks the person for something, and tells what was answered.
func elicits(description string, properties object) *tool {
	return &tool{description: description, call: func(c *call) exchange.Outcome {
		return c.say(func(a map[string][]byte) string { return "Elicitation completed: " + string(a["person"]) },
			form("person", "Please fill this in", properties))
	}}
}

// changes is a tool that tells that a list changed.
func changes(kind, method string) *tool {
	return &tool{description: "tells that a list changed", call: func(c *call) exchange.Outcome {
		c.server.changed(kind, method)
		return result(c.r, text("told"))
	}}
}

func echo(c *call) exchange.Outcome {
	arguments, _ := wire.Get(c.r.Msg.Params(), "arguments")
	return result(c.r, text(string(arguments)))
}

func texts(names ...string) object {
	properties := object{}
	for _, name := range names {
		properties[name] = object{"type": "string"}
	}
	return object{"type": "object", "properties": properties, "required": names}
}

func toolList() list {
	var l list
	for _, name := range slices.Sorted(maps.Keys(tools)) {
		schema := tools[name].schema
		if schema == nil {
			schema = object{"type": "object", "properties": object{}}
		}
		l = append(l, object{"name": name, "description": tools[name].description, "inputSchema": schema})
	}
	return l
}

var defaults = object{
	"name":     object{"type": "string", "default": "John Doe"},
	"age":      object{"type": "integer", "default": 30},
	"score":    object{"type": "number", "default": 95.5},
	"status":   object{"type": "string", "enum": list{"active", "inactive", "pending"}, "default": "active"},
	"verified": object{"type": "boolean", "default": true},
}

var choices = object{
	"untitledSingle": object{"type": "string", "enum": list{"option1", "option2", "option3"}},
	"titledSingle":   object{"type": "string", "oneOf": titled("Option")},
	"legacyEnum":     object{"type": "string", "enum": list{"opt1", "opt2", "opt3"}, "enumNames": list{"Option One", "Option Two", "Option Three"}},
	"untitledMulti":  object{"type": "array", "items": object{"type": "string", "enum": list{"option1", "option2", "option3"}}},
	"titledMulti":    object{"type": "array", "items": object{"anyOf": titled("Choice")}},
}

func titled(what string) list {
	return list{
		object{"const": "value1", "title": "First " + what}, object{"const": "value2", "title": "Second " + what},
		object{"const": "value3", "title": "Third " + what},
	}
}

// schema2020 has what the suite looks for in the schema of json_schema_2020_12_tool.
const schema2020 = `{
	"$schema": "https://json-schema.org/draft/2020-12/schema",
	"type": "object",
	"$defs": {"address": {"$anchor": "addressDef", "type": "object", "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
	"properties": {
		"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}, "phone": {"type": "string"}, "email": {"type": "string"},
		"contactMethod": {"type": "string", "enum": ["phone", "email"]}
	},
	"allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
	"if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
	"then": {"required": ["phone"]},
	"else": {"required": ["email"]},
	"additionalProperties": false
}`
