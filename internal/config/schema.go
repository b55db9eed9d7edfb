package config

import (
	"encoding/json"
	"maps"
)

// JSONSchema returns the schema of our own form of the file, for JSON and TOML alike.
func JSONSchema() []byte {
	s := object(fileKeys())()
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = "Rootbound configuration"
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		panic("bug: " + err.Error())
	}
	return append(text, '\n')
}

func object[T any](keys []key[T]) schema {
	return func() part {
		properties := part{}
		for _, k := range keys {
			p := part{"description": k.doc}
			maps.Copy(p, k.schema())
			properties[k.name] = p
		}
		return part{"type": "object", "properties": properties, "additionalProperties": false}
	}
}

// rootSchema says in addition that a root has either a path or a uri.
func rootSchema() part {
	s := object(rootKeys)()
	s["oneOf"] = []part{{"required": []string{"path"}}, {"required": []string{"uri"}}}
	return s
}
