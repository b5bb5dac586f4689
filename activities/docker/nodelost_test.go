package docker

import (
	"testing"

	"github.com/docker/docker/api/types/events"

	"github.com/leasehold/leasehold/activities"
)

// The fault that it catches: believing an exit for which nothing speaks.
func TestC07_WhatSpeaksForAnExitAfterContactWasLost(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		exit   activities.Exit
		unseen bool
		seen   []events.Action
		own    bool
	}{
		"the daemon was there":                 {activities.Exit{Code: 137}, false, []events.Action{events.ActionStart, events.ActionKill, events.ActionDie}, true},
		"it came back and killed it":           {activities.Exit{}, false, []events.Action{events.ActionKill, events.ActionDie}, false},
		"it was back when the program ended":   {activities.Exit{Code: 1}, false, []events.Action{events.ActionDie}, true},
		"it was away when the program ended":   {activities.Exit{Code: 5}, true, nil, true},
		"it was away, and somebody killed it":  {activities.Exit{Code: 137}, true, nil, false},
		"it was away, and memory ran out":      {activities.Exit{Code: 137, OOMKilled: true}, true, nil, true},
		"the machine was restarted":            {activities.Exit{Code: 255}, true, nil, false},
		"it saw the end, and then went away":   {activities.Exit{}, false, nil, false},
		"it saw a failure, and then went away": {activities.Exit{Code: 1}, false, nil, false},
	}
	for name, tt := range tests {
		seen := map[events.Action]bool{}
		for _, action := range tt.seen {
			seen[action] = true
		}
		c := inspected{Container: activities.Container{Exit: &tt.exit}, unseen: tt.unseen}
		if own := ownEnd(c, seen); own != tt.own {
			t.Errorf("%s: believed %t", name, own)
		}
	}
}
