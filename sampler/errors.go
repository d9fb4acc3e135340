package sampler

import (
	"errors"
	"fmt"
)

// ArgumentError says which argument was outside what a function takes. Field is
// its name as the callers of the library know it, such as "batch_size".
type ArgumentError struct {
	Field   string
	Message string // expected and got
}

func (e *ArgumentError) Error() string { return e.Field + ": " + e.Message }

func badArgument(field, format string, values ...any) error {
	return &ArgumentError{Field: field, Message: fmt.Sprintf(format, values...)}
}

// inSource names the source of a mix that an argument is of.
func inSource(err error, i int) error {
	var argument *ArgumentError
	if !errors.As(err, &argument) {
		return err
	}
	return badArgument(fmt.Sprintf("source %d, %s", i, argument.Field), "%s", argument.Message)
}
