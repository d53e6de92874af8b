// Generate writes the Go code of a protobuf file beside it, without protoc:
//
//	generate DIR/NAME.proto
//
// writes DIR/NAME.pb.go. The same file gives the same code.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/protoutil"
	gengo "google.golang.org/protobuf/cmd/protoc-gen-go/internal_gengo"
	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: generate DIR/NAME.proto")
		os.Exit(2)
	}
	if err := generate(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func generate(file string) error {
	dir, name := filepath.Split(file)
	desc, err := compile(dir, name)
	if err != nil {
		return err
	}
	code, err := render(desc)
	if err != nil {
		return err
	}
	return os.WriteFile(strings.TrimSuffix(file, ".proto")+".pb.go", []byte(code), 0o644)
}

// compile reads a file that imports no other.
func compile(dir, name string) (*descriptorpb.FileDescriptorProto, error) {
	c := protocompile.Compiler{
		Resolver:       &protocompile.SourceResolver{ImportPaths: []string{dir}},
		SourceInfoMode: protocompile.SourceInfoStandard, // carries the comments over
	}
	files, err := c.Compile(context.Background(), name)
	if err != nil {
		return nil, err
	}
	return protoutil.ProtoFromFileDescriptor(files[0]), nil
}

// render does what the plug-in protoc-gen-go does, in this process.
func render(desc *descriptorpb.FileDescriptorProto) (string, error) {
	plugin, err := protogen.Options{}.New(&pluginpb.CodeGeneratorRequest{
		FileToGenerate: []string{desc.GetName()},
		Parameter:      proto.String("paths=source_relative"),
		ProtoFile:      []*descriptorpb.FileDescriptorProto{desc},
	})
	if err != nil {
		return "", err
	}
	gengo.GenerateFile(plugin, plugin.Files[0])
	out := plugin.Response()
	if out.Error != nil {
		return "", fmt.Errorf("%s: %s", desc.GetName(), out.GetError())
	}
	return out.File[0].GetContent(), nil
}
