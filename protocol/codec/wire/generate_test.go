package wire_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"

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

var update = flag.Bool("update", false, "write the generated code anew")

// The code is that of wire.proto: wire.pb.go, and wire_vtproto.pb.go, which reads and writes
// the same messages without reflection. No protoc is needed.
func TestTheGeneratedCodeIsThatOfTheFile(t *testing.T) {
	desc, err := compile(".", "wire.proto")
	if err != nil {
		t.Fatal(err)
	}
	codes, err := render(desc)
	if err != nil {
		t.Fatal(err)
	}
	for name, code := range codes {
		if *update {
			if err := os.WriteFile(name, []byte(code), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if have, err := os.ReadFile(name); err != nil || string(have) != code {
			t.Errorf("%s is not what wire.proto gives (%v): run go generate here", name, err)
		}
	}
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
