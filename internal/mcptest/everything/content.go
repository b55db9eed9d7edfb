package main

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	goimage "image"
	"image/color"
	"image/png"
	"strings"

	"github.com/rootbound/rootbound/internal/exchange"
	"github.com/rootbound/rootbound/internal/wire"
)

var pixel, sound = makePixel(), makeSound()

// makePixel returns a PNG of one red pixel, in base64.
func makePixel() string {
	img := goimage.NewRGBA(goimage.Rect(0, 0, 1, 1))
	img.Set(0, 0, color.RGBA{R: 255, A: 255})
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		panic(err)
	}
	return base64.StdEncoding.EncodeToString(b.Bytes())
}

// makeSound returns a WAV of no length, in base64.
func makeSound() string {
	const rate = 8000
	b := []byte("RIFF")
	b = binary.LittleEndian.AppendUint32(b, 36) // what follows
	b = append(b, "WAVEfmt "...)
	b = binary.LittleEndian.AppendUint32(b, 16)   // of the format
	b = binary.LittleEndian.AppendUint16(b, 1)    // plain samples
	b = binary.LittleEndian.AppendUint16(b, 1)    // one channel
	b = binary.LittleEndian.AppendUint32(b, rate) // samples a second
	b = binary.LittleEndian.AppendUint32(b, rate) // bytes a second
	b = binary.LittleEndian.AppendUint16(b, 1)    // bytes a sample
	b = binary.LittleEndian.AppendUint16(b, 8)    // bits a sample
	b = append(b, "data"...)
	b = binary.LittleEndian.AppendUint32(b, 0)
	return base64.StdEncoding.EncodeToString(b)
}

func image() object { return object{"type": "image", "data": pixel, "mimeType": "image/png"} }

func embedded(uri, text string) object {
	return object{"type": "resource", "resource": object{"uri": uri, "mimeType": "text/plain", "text": text}}
}

func resourceList() list {
	return list{
		object{"uri": "test://static-text", "name": "static-text", "description": "a text", "mimeType": "text/plain"},
		object{"uri": "test://static-binary", "name": "static-binary", "description": "an image", "mimeType": "image/png"},
		object{"uri": "test://watched-resource", "name": "watched-resource", "description": "a text to follow", "mimeType": "text/plain"},
	}
}

// read answers resources/read.
func read(r *exchange.Request) exchange.Outcome {
	uri := wire.GetString(r.Msg.Params(), "uri")
	found := func(mime, kind, content string) exchange.Outcome {
		return cached(r, object{"contents": list{object{"uri": uri, "mimeType": mime, kind: content}}})
	}
	id, isTemplate := strings.CutPrefix(uri, "test://template/")
	id, ends := strings.CutSuffix(id, "/data")
	switch {
	case uri == "test://static-text":
		return found("text/plain", "text", "This is the content of the static text resource.")
	case uri == "test://static-binary":
		return found("image/png", "blob", pixel)
	case uri == "test://watched-resource":
		return found("text/plain", "text", "Watched resource content")
	case isTemplate && ends && id != "":
		return found("application/json", "text", string(encode(object{"id": id, "templateTest": true, "data": "Data for ID: " + id})))
	}
	code := -32602
	if r.Era == exchange.Legacy {
		code = -32002
	}
	return exchange.Fail(r, code, "Resource not found", encode(object{"uri": uri}))
}

func promptList() list {
	argument := func(name string) object { return object{"name": name, "description": name, "required": true} }
	return list{
		object{"name": "test_simple_prompt", "description": "without arguments"},
		object{"name": "test_prompt_with_arguments", "description": "with arguments", "arguments": list{argument("arg1"), argument("arg2")}},
		object{"name": "test_prompt_with_embedded_resource", "description": "with a resource", "arguments": list{argument("resourceUri")}},
		object{"name": "test_prompt_with_image", "description": "with an image"},
		object{"name": "test_input_required_result_prompt", "description": "asks for its context"},
	}
}

// prompt answers prompts/get.
func prompt(c *call, name string) exchange.Outcome {
	says := func(s string) object { return object{"type": "text", "text": s} }
	answer := func(contents ...object) exchange.Outcome {
		var messages list
		for _, content := range contents {
			messages = append(messages, object{"role": "user", "content": content})
		}
		return result(c.r, object{"messages": messages})
	}
	switch name {
	case "test_simple_prompt":
		return answer(says("This is a simple prompt for testing."))
	case "test_prompt_with_arguments":
		return answer(says(fmt.Sprintf("Prompt with arguments: arg1='%s', arg2='%s'", c.argument("arg1"), c.argument("arg2"))))
	case "test_prompt_with_embedded_resource":
		return answer(embedded(c.argument("resourceUri"), "Embedded resource content for testing."), says("Please process the embedded resource above."))
	case "test_prompt_with_image":
		return answer(image(), says("Please analyze the image above."))
	case "test_input_required_result_prompt":
		a, o := c.ask(form("user_context", "What context should the prompt use?", object{"context": object{"type": "string"}}, "context"))
		if o != nil {
			return *o
		}
		return answer(says("Context: " + wire.GetString(a["user_context"], "content", "context")))
	}
	return exchange.Fail(c.r, wire.CodeInvalidParams, fmt.Sprintf("there is no prompt %.100q", name), nil)
}
