/** Each foreign cluster in words: what the map shows, and what can be done about it. */
import type { VNode } from 'preact';
import type { ClusterModel, DashboardModel } from '../src/dashboard/model.ts';
import type { Ask } from './doing.ts';
import { mainResources, plural, resourceName, share } from './format.ts';
import { Badge, Empty, Hidden, Phase, Section, Why } from './parts.tsx';

interface ClustersProps {
  model: DashboardModel;
  ask: Ask;
  onPeer: () => void;
}

export const Clusters = ({ model, ask, onPeer }: ClustersProps): VNode => (
  <Section
    id="clusters"
    title="Clusters"
    aside={
      <button type="button" class="main" onClick={onPeer}>
        Peer…
      </button>
    }
  >
    {model.hidden.includes('foreignclusters') && <Hidden kinds="ForeignClusters" />}
    {model.clusters.length === 0 && !model.hidden.includes('foreignclusters') && (
      <Empty>No other cluster is known yet. One on the same network appears by itself.</Empty>
    )}
    <ul class="cards">
      {model.clusters.map((cluster) => (
        <Cluster cluster={cluster} model={model} ask={ask} key={cluster.name} />
      ))}
    </ul>
    {model.more.clusters > model.clusters.length && (
      <p class="muted">
        {model.clusters.length} of {model.more.clusters} are shown.
      </p>
    )}
  </Section>
);

function Cluster({ cluster, model, ask }: { cluster: ClusterModel; model: DashboardModel; ask: Ask }): VNode {
  const { outgoing, incoming, request, offer, nodes } = cluster;
  const isPeered = [outgoing.phase, incoming.phase].some((phase) => phase !== 'None' && phase !== 'Denied');
  return (
    <li class="cluster" id={`cluster-${cluster.name}`} tabIndex={-1}>
      <div class="cluster-head">
        <h3>{cluster.title}</h3>
        <Badge tone={cluster.isConnected ? 'good' : 'calm'}>
          {cluster.isConnected ? 'connected' : 'no link'}
        </Badge>
      </div>
      <p class="muted mono small">{cluster.clusterID ?? cluster.name}</p>
      <Phase label="We use it" state={outgoing} />
      <Phase label="It uses us" state={incoming} />
      {offer?.word === 'Denied' && <Why reason="Denied" message="You have refused its offer." />}
      {nodes.map((node) => (
        <p class="muted small" key={node.name}>
          Node <span class="mono">{node.name}</span>: {plural(node.pods, 'pod')}
          {node.isReady === false && ` · not ready (${node.reason ?? 'unknown'})`}
          {node.isReady === true && node.reason === 'Closed' && ' · takes no new pods'}
          {mainResources(node.resources).map(([name, amount]) => ` · ${amount} ${resourceName(name)}`)}
        </p>
      ))}
      {request !== undefined && (
        <Use promised={request.resources} used={request.used} title={cluster.title} />
      )}
      <p class="muted small">
        {[cluster.foundBy, cluster.endpoint, cluster.software && `version ${cluster.software}`]
          .filter(Boolean)
          .join(' · ')}
      </p>
      <div class="buttons">
        {isPeered && !cluster.isDisabled && (
          <button type="button" onClick={() => ask(unpeering(cluster))}>
            Unpeer<span class="unseen"> {cluster.title}</span>
          </button>
        )}
        {isPeered && model.tether === undefined && !model.hidden.includes('clustermodes') && (
          <button type="button" onClick={() => ask(tethering(cluster))}>
            Tether<span class="unseen"> to {cluster.title}</span>
          </button>
        )}
      </div>
    </li>
  );
}

/** What of the promised is in use by the peer. */
function Use({
  promised = {},
  used = {},
  title,
}: {
  promised: Record<string, string> | undefined;
  used: Record<string, string> | undefined;
  title: string;
}): VNode | null {
  const rows = mainResources(promised).flatMap(([name, amount]) => {
    const percent = share(used[name], amount);
    return percent === undefined ? [] : [{ name, amount, percent }];
  });
  if (rows.length === 0) return null;
  return (
    <div class="use">
      {rows.map(({ name, amount, percent }) => (
        <label key={name}>
          <span>
            {resourceName(name)} <span class="muted">{`${used[name] ?? ''} of ${amount}`}</span>
          </span>
          <meter
            min={0}
            max={100}
            high={85}
            value={percent}
            aria-label={`${resourceName(name)} that ${title} uses`}
          />
        </label>
      ))}
    </div>
  );
}

const unpeering = ({ name, title }: ClusterModel): Parameters<Ask>[0] => ({
  title: `End the peering with ${title}?`,
  text: 'Its pods here and ours over there leave, as their disruption budgets allow, and then end. This cannot be taken back.',
  word: 'Unpeer',
  isHarsh: true,
  action: { do: 'unpeer', name },
});

const tethering = ({ name, title }: ClusterModel): Parameters<Ask>[0] => ({
  title: `Tether this cluster to ${title}?`,
  text: `${title} then decides what runs on the nodes of this cluster, and new pods of this cluster go there.`,
  word: 'Tether',
  isHarsh: true,
  action: { do: 'tether', name },
});
