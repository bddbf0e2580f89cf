package main

import (
	"context"

	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
)

// pluginLists names the plugins of a profile by point, in the order in which they act.
type pluginLists map[string][]listed

// listed is a plugin with its weight, which is 0 where it does not score.
type listed struct {
	Name   string `json:"name"`
	Weight int32  `json:"weight,omitempty"`
}

// listPlugins makes the profiles of the case's configuration and says what is in them.
func (r *request) listPlugins() (map[string]pluginLists, error) {
	configuration, err := loadConfiguration(r.Config)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), klog.Logger{}))
	defer cancel()
	world, err := worldOf(ctx, configuration)
	if err != nil {
		return nil, err
	}
	lists := map[string]pluginLists{}
	for name, made := range world.frameworks {
		lists[name] = listsOf(made.ListPlugins())
	}
	return lists, nil
}

// makeProfiles makes the profiles of a configuration, only to see whether they can be made.
func makeProfiles(configuration *config.KubeSchedulerConfiguration) error {
	ctx, cancel := context.WithCancel(klog.NewContext(context.Background(), klog.Logger{}))
	defer cancel()
	_, err := worldOf(ctx, configuration)
	return err
}

func worldOf(ctx context.Context, configuration *config.KubeSchedulerConfiguration) (*environment, error) {
	return newEnvironment(ctx, profiles{configuration.Profiles, configuration.Profiles[0].SchedulerName}, nil, nil)
}

func listsOf(plugins *config.Plugins) pluginLists {
	sets := map[string]config.PluginSet{
		"preEnqueue":        plugins.PreEnqueue,
		"queueSort":         plugins.QueueSort,
		"preFilter":         plugins.PreFilter,
		"filter":            plugins.Filter,
		"postFilter":        plugins.PostFilter,
		"preScore":          plugins.PreScore,
		"score":             plugins.Score,
		"reserve":           plugins.Reserve,
		"permit":            plugins.Permit,
		"preBind":           plugins.PreBind,
		"bind":              plugins.Bind,
		"postBind":          plugins.PostBind,
		"placementGenerate": plugins.PlacementGenerate,
		"placementScore":    plugins.PlacementScore,
	}
	addPoints(sets, plugins)
	lists := pluginLists{}
	for point, set := range sets {
		for _, plugin := range set.Enabled {
			lists[point] = append(lists[point], listed{plugin.Name, plugin.Weight})
		}
	}
	return lists
}
