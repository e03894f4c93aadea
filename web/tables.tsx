/** Tunnels, namespaces and news. */
import type { VNode } from 'preact';
import type { DashboardModel, NamespaceModel, NewsModel, PlaceModel } from '../src/dashboard/model.ts';
import type { Ask } from './doing.ts';
import { ago, bytes, plural } from './format.ts';
import { Badge, Empty, Hidden, Section, Table, Why } from './parts.tsx';

export function Tunnels({ model }: { model: DashboardModel }): VNode {
  const rows = model.clusters.flatMap((cluster) =>
    cluster.tunnel === undefined ? [] : [{ cluster, tunnel: cluster.tunnel }],
  );
  const heads = ['Cluster', 'State', 'Round trip', 'Loss', 'Received', 'Sent', 'MTU'];
  return (
    <Section id="tunnels" title="Tunnels">
      {model.hidden.includes('tunnels') && <Hidden kinds="Tunnels" />}
      {rows.length === 0 && !model.hidden.includes('tunnels') && (
        <Empty>No tunnel. Peered clusters get one where both run the role gateway.</Empty>
      )}
      {rows.length > 0 && (
        <Table
          caption="Tunnels to other clusters"
          heads={heads}
          rows={rows.map(({ cluster, tunnel }) => ({
            key: cluster.name,
            cells: [
              <strong key="title">{cluster.title}</strong>,
              <div key="state">
                <Badge tone={tunnel.isReady ? 'good' : 'bad'}>{tunnel.isReady ? 'up' : 'down'}</Badge>
                <Why {...tunnel} />
              </div>,
              tunnel.rttMs === undefined ? '–' : `${tunnel.rttMs} ms`,
              tunnel.lossPercent === undefined ? '–' : `${tunnel.lossPercent} %`,
              tunnel.receivedBytes === undefined ? '–' : bytes(tunnel.receivedBytes),
              tunnel.sentBytes === undefined ? '–' : bytes(tunnel.sentBytes),
              tunnel.mtu ?? '–',
            ],
          }))}
        />
      )}
    </Section>
  );
}

interface NamespacesProps {
  model: DashboardModel;
  ask: Ask;
  onOffload: (namespace: string) => void;
}

export function Namespaces({ model, ask, onOffload }: NamespacesProps): VNode {
  const isHidden = model.hidden.includes('namespaces') && model.hidden.includes('namespaceoffloadings');
  return (
    <Section id="namespaces" title="Namespaces">
      {isHidden && <Hidden kinds="namespaces" />}
      {model.namespaces.length > 0 && (
        <Table
          caption="Namespaces and where their pods run"
          heads={['Namespace', 'Pods run', 'Offloaded', 'Change']}
          rows={model.namespaces.map((one) => ({
            key: one.name,
            cells: [
              <span class="mono" key="name">
                {one.name}
              </span>,
              <Places places={one.places} key="places" />,
              <Offloaded one={one} key="state" />,
              <OffloadButton one={one} ask={ask} onOffload={onOffload} key="do" />,
            ],
          }))}
        />
      )}
      {model.more.namespaces > model.namespaces.length && (
        <p class="muted">
          {model.namespaces.length} of {model.more.namespaces} are shown.
        </p>
      )}
    </Section>
  );
}

const Places = ({ places }: { places: readonly PlaceModel[] }): VNode => (
  <ul class="places">
    {places
      .filter(({ pods, clusterID }) => pods > 0 || clusterID !== undefined)
      .map((place) => (
        <li class={place.clusterID === undefined ? 'here' : 'there'} key={place.clusterID ?? ''}>
          <span class="place">
            {place.title} <b>{place.pods}</b>
            <span class="unseen"> {place.pods === 1 ? 'pod' : 'pods'}</span>
          </span>
          {place.phase !== undefined && (place.phase !== 'Ready' || place.reason !== undefined) && (
            <Why {...place} />
          )}
        </li>
      ))}
  </ul>
);

const Offloaded = ({ one }: { one: NamespaceModel }): VNode =>
  one.isOffloaded ? (
    <div>
      <Badge tone={one.reason === undefined ? 'good' : 'busy'}>{one.strategy}</Badge>
      <Why {...one} />
    </div>
  ) : (
    <span class="muted">no</span>
  );

function OffloadButton({
  one,
  ask,
  onOffload,
}: { one: NamespaceModel } & Omit<NamespacesProps, 'model'>): VNode {
  if (!one.isOffloaded) {
    return (
      <button type="button" onClick={() => onOffload(one.name)}>
        Offload<span class="unseen"> {one.name}</span>
      </button>
    );
  }
  const abroad = one.places.filter(({ clusterID }) => clusterID !== undefined);
  const pods = abroad.reduce((sum, place) => sum + place.pods, 0);
  return (
    <button
      type="button"
      onClick={() =>
        ask({
          title: `Take ${one.name} back?`,
          text: `${plural(pods, 'pod')} in other clusters end there and start here; nothing of the namespace is left there.`,
          word: 'Take back',
          isHarsh: true,
          action: { do: 'unoffload', namespace: one.name },
        })
      }
    >
      Take back<span class="unseen"> {one.name}</span>
    </button>
  );
}

export const News = ({ model, now }: { model: DashboardModel; now: number }): VNode => (
  <Section id="news" title="Events and refusals">
    {model.hidden.includes('events') && <Hidden kinds="events" />}
    {model.news.length === 0 && !model.hidden.includes('events') && (
      <Empty>Nothing has happened lately.</Empty>
    )}
    <ul class="news" tabIndex={0} aria-label="Newest events">
      {model.news.map((one) => (
        <Item one={one} now={now} key={one.id} />
      ))}
    </ul>
  </Section>
);

const Item = ({ one, now }: { one: NewsModel; now: number }): VNode => (
  <li class={one.isWarning ? 'warning' : ''}>
    <p>
      <strong>{one.reason}</strong> <span class="mono small">{one.about}</span>
      {one.isWarning && <Badge tone="bad">warning</Badge>}
    </p>
    <p>{one.message}</p>
    <p class="muted small">
      {ago(one.at, now)}
      {one.count > 1 && ` · ${one.count} times`}
    </p>
  </li>
);
