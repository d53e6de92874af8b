package user_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"ramp/agents/user"
	"ramp/protocol/message"
)

// The journal of an earlier agent has message.Purchase where Row has its own type:
// each reads all that the other has written, and the owner sees all of it.
func TestRowsOfEarlierAgentsAreReadBothWays(t *testing.T) {
	type earlier struct {
		Purchase message.Purchase `json:"purchase"`
	}
	var old earlier
	fill(t, reflect.ValueOf(&old.Purchase).Elem())
	old.Purchase.Until, old.Purchase.Waits = time.Time{}, "" // never stored
	stored, err := json.Marshal(old)
	if err != nil {
		t.Fatal(err)
	}
	row, err := user.ReadRow(stored)
	if err != nil {
		t.Fatal(err)
	}
	if got := row.View(); !reflect.DeepEqual(got, old.Purchase) {
		t.Fatalf("the owner sees\n%+v\nwant\n%+v", got, old.Purchase)
	}
	if stored, err = json.Marshal(row); err != nil {
		t.Fatal(err)
	}
	var again earlier
	if err := json.Unmarshal(stored, &again); err != nil || !reflect.DeepEqual(again, old) {
		t.Fatalf("an earlier agent reads\n%+v\nwant\n%+v\n%v", again, old, err)
	}
}

// fill gives every field a value other than zero.
func fill(t *testing.T, v reflect.Value) {
	if v.Type() == reflect.TypeFor[time.Time]() {
		v.Set(reflect.ValueOf(time.Date(2026, 11, 23, 6, 30, 0, 0, time.UTC)))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(t, v.Index(0))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem())
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("key"), reflect.ValueOf(1))
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint32:
		v.SetUint(1)
	case reflect.Float64:
		v.SetFloat(0.5)
	default:
		t.Fatalf("no value for %s", v.Type())
	}
}
