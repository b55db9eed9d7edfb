package fsserver

import (
	"errors"
	"time"

	"github.com/rootbound/rootbound/rootfs"
)

// trashed bounds the trash of each root.
var trashed = rootfs.TrashOptions{MaxBytes: 2 << 30, MaxAge: 30 * 24 * time.Hour}

// codeUnknownID: nothing in the trash has this id.
const codeUnknownID = "unknown_id"

var deletePath = tool{
	name:  "delete_path",
	title: "Delete File or Directory",
	description: "Take away a file, a symbolic link itself, or a directory with all that is in it. It goes to a trash in the same " +
		"allowed directory, which no tool shows, and restore_path brings it back: for 30 days, while the trash holds no more than " +
		"2 GiB; then the oldest is removed for good. " + onlyWithin,
	params:      []param{aPath},
	annotations: changes,
	extra:       true,
	writes:      true,
	refused: func(c *call) error {
		path, err := c.target(c.args.text("path"))
		if err == nil {
			if err = c.fs.May(rootfs.ToTake, path); !isRefused(err) {
				return nil
			}
			err = c.explainDelete(path, err)
		}
		return err
	},
	run: func(c *call) (answer, error) {
		arg := c.args.text("path")
		path, err := c.target(arg)
		if err != nil {
			return answer{}, err
		}
		id, err := c.fs.Trash(path, trashed)
		if err != nil {
			return answer{}, c.explainDelete(path, err)
		}
		return answer{text: "Successfully deleted " + show(arg) + "\nTo bring it back: restore_path with the id " + id}, nil
	},
}

// explainDelete says what went wrong when something was to be deleted.
func (c *call) explainDelete(path string, err error) error {
	var e *rootfs.Error
	switch {
	case errors.As(err, &e) && e.Path != path:
		return refuse(e.Code, "The trash cannot be used, so nothing was deleted: %s: %s", show(e.Path), e.Code.Error())
	case errors.Is(err, rootfs.TooLarge):
		return refuse(rootfs.TooLarge, "It holds more than the %d bytes that the trash takes, so nothing was deleted: %s. Delete parts of it.",
			trashed.MaxBytes, show(c.real(path)))
	case errors.Is(err, rootfs.Denied):
		return denial{refusal{string(rootfs.Denied), "Access denied - this name, or one beneath it, is not served: " + show(c.real(path))}, reasonName, c.real(path)}
	case errors.Is(err, rootfs.CrossDevice):
		return refuse(rootfs.CrossDevice, "It cannot be moved to the trash, so nothing was deleted: %s. It is in another file system, or a directory of a "+
			"lower layer (overlayfs), as in a container. A person can delete it, with a program of their own.", show(c.real(path)))
	case errors.Is(err, rootfs.Mount) && !c.sets.options.NoMounts:
		return refuse(rootfs.Mount, "It is a mount point, or holds one, so nothing was deleted: %s", show(c.real(path)))
	}
	return c.explain("unlink", path, err)
}

var restorePath = tool{
	name:  "restore_path",
	title: "Restore File or Directory",
	description: "Bring back what delete_path has taken away, to the path where it was. Directories above it that are gone are made " +
		"again. When there is something at the path now, nothing is changed.",
	params:      []param{{name: "id", schema: aString.says("The id that delete_path has told"), required: true}},
	annotations: adds,
	extra:       true,
	writes:      true,
	refused:     func(*call) error { return nil }, // where it leads is known when it is found
	run: func(c *call) (answer, error) {
		id := c.args.text("id")
		path, err := c.fs.Restore(id)
		var e *rootfs.Error
		switch {
		case err == nil:
			return answer{text: "Successfully restored " + show(path)}, nil
		case errors.Is(err, rootfs.NotFound):
			return answer{}, refuse(codeUnknownID, "Nothing in the trash has the id %.100q.", id)
		case !errors.As(err, &e):
			return answer{}, err
		case e.Code == rootfs.Exists:
			return answer{}, refuse(e.Code, "Destination already exists: %s", show(e.Path))
		}
		return answer{}, c.explain("rename", e.Path, err)
	},
}
