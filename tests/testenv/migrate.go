package testenv

import (
	"context"

	"github.com/leasehold/leasehold/leasestore"
)

// migrate gives the template database the schema of the store.
func migrate(ctx context.Context, databaseURL string) error {
	_, err := leasestore.Migrate(ctx, databaseURL)
	return err
}
