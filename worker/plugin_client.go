package worker

import (
	"context"
	"errors"
	"slices"

	"go.temporal.io/sdk/client"
)

// ConfigureClient notes the connection options.
func (p *Plugin) ConfigureClient(_ context.Context, options client.PluginConfigureClientOptions) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dial != nil {
		return errors.New("this Leasehold plugin serves another client already: make a new one with NewPlugin")
	}
	p.given = options.ClientOptions.ConnectionOptions
	return nil
}

// NewClient notes how to make a client like this one, without plugins, for the
// inner workers: with the same connection, credentials, converters and
// interceptors.
func (p *Plugin) NewClient(ctx context.Context, options client.PluginNewClientOptions,
	next func(context.Context, client.PluginNewClientOptions) error,
) error {
	if err := next(ctx, options); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	same := options.ClientOptions
	p.namespace = same.Namespace
	same.Plugins = nil
	same.Interceptors = slices.Clone(same.Interceptors)
	if same.Credentials != nil { // they are applied again
		same.ConnectionOptions.TLS = p.given.TLS
	}
	p.dial = func(ctx context.Context) (client.Client, error) {
		if options.FromExisting != nil {
			return client.NewClientFromExistingWithContext(ctx, options.FromExisting, same)
		}
		return client.DialContext(ctx, same)
	}
	return nil
}
