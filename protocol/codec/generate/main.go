// Generate writes the Go code of a protobuf file beside it, without protoc:
//
//	generate DIR/NAME.proto
//
// writes DIR/NAME.pb.go, and DIR/NAME_vtproto.pb.go, which reads and writes the same
// messages without reflection. The same file gives the same code.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/protoutil"
	_ "github.com/planetscale/vtprotobuf/features/marshal"
	_ "github.com/planetscale/vtprotobuf/features/size"
	_ "github.com/planetscale/vtprotobuf/features/unmarshal"
	vtgo "github.com/planetscale/vtprotobuf/generator"
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
	codes, err := render(desc)
	if err != nil {
		return err
	}
	for name, code := range codes {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(code), 0o644); err != nil {
			return err
		}
	}
	return nil
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

// render does what the plug-ins protoc-gen-go and protoc-gen-go-vtproto do, in this
// process. It returns the code of each file.
func render(desc *descriptorpb.FileDescriptorProto) (map[string]string, error) {
	plugin, err := protogen.Options{}.New(&pluginpb.CodeGeneratorRequest{
		FileToGenerate: []string{desc.GetName()},
		Parameter:      proto.String("paths=source_relative"),
		ProtoFile:      []*descriptorpb.FileDescriptorProto{desc},
	})
	if err != nil {
		return nil, err
	}
	gengo.GenerateFile(plugin, plugin.Files[0])
	vt, err := vtgo.NewGenerator(plugin, []string{"marshal_strict", "unmarshal", "size"}, &vtgo.Config{})
	if err != nil {
		return nil, err
	}
	vt.Generate()
	out := plugin.Response()
	if out.Error != nil {
		return nil, fmt.Errorf("%s: %s", desc.GetName(), out.GetError())
	}
	codes := map[string]string{}
	for _, f := range out.File {
		codes[f.GetName()] = f.GetContent()
	}
	return codes, nil
}
