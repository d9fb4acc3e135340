package disk

import (
	"errors"
	"fmt"
	"math"
	"strings"
)

const (
	// maxDescrDepth bounds a dtype nested in dtypes. Structures of structures
	// of structures occur; eight levels leave room beyond anything met, and
	// keep the stack a hostile identity can claim to a few frames.
	maxDescrDepth = 8
	// maxNesting follows: a level is a list of fields, each a list, and the
	// deepest field may hold a shape.
	maxNesting = 2*maxDescrDepth + 1
	// maxDims is NumPy's own limit.
	maxDims = 64
)

var errNesting = fmt.Errorf("identity: expected dtypes nested at most %d deep", maxDescrDepth)

// checkIdentity holds the tree of an identity to the grammar of FORMAT 1.
func checkIdentity(root []any) error {
	if err := checkDtype(root[0], 1); err != nil {
		return fmt.Errorf("dtype: %w", err)
	}
	if len(root) > 1 {
		if err := checkShape(root[1]); err != nil {
			return fmt.Errorf("item_shape: %w", err)
		}
	}
	return nil
}

// checkDtype takes a NumPy type string or a descr list.
func checkDtype(v any, depth int) error {
	switch v := v.(type) {
	case string:
		return checkTypeString(v)
	case []any:
		if depth >= maxDescrDepth {
			return errNesting
		}
		if len(v) == 0 {
			return errors.New("expected at least one field, got an empty list")
		}
		for i, f := range v {
			if err := checkField(f, depth); err != nil {
				return fmt.Errorf("field %d: %w", i, err)
			}
		}
		return nil
	}
	return fmt.Errorf("expected a string or a list of fields, got %s", brief(v))
}

// checkField takes [name, dtype] and [name, dtype, shape].
func checkField(v any, depth int) error {
	f, ok := v.([]any)
	if !ok || len(f) < 2 || len(f) > 3 {
		return fmt.Errorf("expected [name, dtype] or [name, dtype, shape], got %s", brief(v))
	}
	if !isName(f[0]) {
		return fmt.Errorf("expected a name or [title, name], got %s", brief(f[0]))
	}
	if err := checkDtype(f[1], depth+1); err != nil {
		return err
	}
	if len(f) == 3 {
		return checkShape(f[2])
	}
	return nil
}

// isName takes a name and [title, name].
func isName(v any) bool {
	if pair, ok := v.([]any); ok && len(pair) == 2 {
		_, title := pair[0].(string)
		_, name := pair[1].(string)
		return title && name
	}
	_, ok := v.(string)
	return ok
}

// checkShape takes a list of dimensions. A 0 among them is the engine's to
// refuse, by the width it makes.
func checkShape(v any) error {
	dims, ok := v.([]any)
	if !ok || len(dims) > maxDims {
		return fmt.Errorf("expected a list of at most %d dimensions, got %s", maxDims, brief(v))
	}
	for i, d := range dims {
		if n, ok := d.(uint64); !ok || n > math.MaxInt64 {
			return fmt.Errorf("dimension %d: expected a whole number from 0 to %d, got %s", i, math.MaxInt64, brief(d))
		}
	}
	return nil
}

// checkTypeString takes what numpy.dtype.str gives for types of plain bytes
// ("<f4", "|S10", "<M8[ns]") and the name of an extension dtype ("bfloat16").
// Types that hold pointers ("|O") are refused: a forged store could make them
// point anywhere.
func checkTypeString(s string) error {
	kind := strings.TrimLeft(s, "<>|=")
	switch {
	case len(s) > 64 || kind == "" || len(s)-len(kind) > 1:
	case strings.HasPrefix(kind, "object"):
	case strings.Trim(kind, "abcdefghijklmnopqrstuvwxyz0123456789_") == "" && kind == s && s[0] >= 'a' && len(s) > 2:
		return nil
	case strings.ContainsRune("?biufcSUV", rune(kind[0])) && strings.Trim(kind[1:], "0123456789") == "":
		return nil
	case strings.ContainsRune("mM", rune(kind[0])) && strings.Trim(kind[1:], "0123456789[]YMWDhmsunpfa") == "":
		return nil
	}
	return fmt.Errorf("expected a type of plain bytes such as %q or the name of an extension type, got %s", "<f4", brief(s))
}

// brief shows a value without filling the message with it.
func brief(v any) string {
	s := fmt.Sprintf("%q", v)
	if n, ok := v.(uint64); ok {
		s = fmt.Sprint(n)
	}
	if len(s) > 80 {
		s = s[:80] + "..."
	}
	return s
}
