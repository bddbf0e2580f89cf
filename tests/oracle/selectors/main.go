// Command selectors answers what Kubernetes says of CEL selectors of devices, with its own package for them.
//
// It reads one JSON question per line on standard input, a selector and the devices that it is asked about, and writes
// one JSON answer per line on standard output: why the selector cannot be compiled, or for each device whether it
// matches or the error of its evaluation.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/dynamic-resource-allocation/cel"
)

type question struct {
	Expression string   `json:"expression"`
	Devices    []device `json:"devices"`
	// New says whether the API server has not stored the expression yet.
	New bool `json:"new"`
}

type device struct {
	Driver                   string                                                  `json:"driver"`
	AllowMultipleAllocations *bool                                                   `json:"allowMultipleAllocations"`
	Attributes               map[resourcev1.QualifiedName]resourcev1.DeviceAttribute `json:"attributes"`
	Capacity                 map[resourcev1.QualifiedName]resourcev1.DeviceCapacity  `json:"capacity"`
}

type answer struct {
	Refused string    `json:"refused,omitempty"`
	Results []verdict `json:"results,omitempty"`
	Invalid string    `json:"invalid,omitempty"`
}

type verdict struct {
	Matches bool   `json:"matches"`
	Error   string `json:"error,omitempty"`
	Cost    uint64 `json:"cost"`
}

func main() {
	if err := serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "selectors:", err)
		os.Exit(1)
	}
}

func serve(in io.Reader, out io.Writer) error {
	lines := bufio.NewReaderSize(in, 1<<20)
	writer := bufio.NewWriterSize(out, 1<<16)
	encoder := json.NewEncoder(writer)
	encoder.SetEscapeHTML(false)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			if err := encoder.Encode(respond(line)); err != nil {
				return err
			}
			if err := writer.Flush(); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// respond turns a panic into an answer, so that the other questions are not lost.
func respond(line []byte) (result answer) {
	defer func() {
		if trouble := recover(); trouble != nil {
			result = answer{Invalid: fmt.Sprintf("panic: %v", trouble)}
		}
	}()
	var asked question
	if err := json.Unmarshal(line, &asked); err != nil {
		return answer{Invalid: err.Error()}
	}
	compiler := cel.GetCompiler(cel.Features{EnableConsumableCapacity: true})
	kind := environment.StoredExpressions
	if asked.New {
		kind = environment.NewExpressions
	}
	compiled := compiler.CompileCELExpression(asked.Expression, cel.Options{DisableCostEstimation: true, EnvType: &kind})
	if compiled.Error != nil {
		return answer{Refused: compiled.Error.Error()}
	}
	for _, one := range asked.Devices {
		result.Results = append(result.Results, evaluate(compiled, one))
	}
	return result
}

func evaluate(compiled cel.CompilationResult, one device) verdict {
	matches, details, err := compiled.DeviceMatches(context.Background(), cel.Device(one))
	said := verdict{Matches: matches}
	if details != nil && details.ActualCost() != nil {
		said.Cost = *details.ActualCost()
	}
	if err != nil {
		said.Error = err.Error()
	}
	return said
}
