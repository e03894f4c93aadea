/** The clusters and what is between them. The same is said in words below the map, cluster by cluster. */
import type { VNode } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { ClusterModel, DashboardModel, DirectionModel, TunnelModel } from '../src/dashboard/model.ts';
import { plural } from './format.ts';
import { layoutOf, lineBetween, type MapLayout, type Point } from './layout.ts';

const MOST = 14;

const cut = (text: string, most: number): string =>
  text.length > most ? `${text.slice(0, most - 1)}…` : text;

/** What a person wants to know of a cluster at a glance. */
export function glance({
  outgoing,
  incoming,
  pods,
  isConnected,
  isDisabled,
  request,
  offer,
}: ClusterModel): string {
  if (request?.waits === true || offer?.waits === true) return 'waits for you';
  const parts = [
    ...(outgoing.phase === 'Established' ? [`${plural(pods, 'pod')} there`] : []),
    ...(incoming.phase === 'Established' ? ['uses us'] : []),
  ];
  if (parts.length > 0) return parts.join(' · ');
  const going = [outgoing.phase, incoming.phase].find((phase) => phase !== 'None');
  return going?.toLowerCase() ?? (isDisabled ? 'not wanted' : isConnected ? 'connected' : 'seen');
}

/** The liveliest first, where not all have room. */
const weight = ({ outgoing, incoming, request, offer, isConnected }: ClusterModel): number =>
  Number(request?.waits === true || offer?.waits === true) * 4 +
  Number(outgoing.phase !== 'None') * 2 +
  Number(incoming.phase !== 'None') * 2 +
  Number(isConnected);

export function ClusterMap({ model }: { model: DashboardModel }): VNode {
  const box = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useLayoutEffect(() => {
    const element = box.current;
    if (element === null) return undefined;
    const observer = new ResizeObserver(() => setWidth(element.clientWidth));
    observer.observe(element);
    setWidth(element.clientWidth);
    return () => observer.disconnect();
  }, []);
  const all = model.clusters;
  const shown = all.length <= MOST ? all : all.toSorted((a, b) => weight(b) - weight(a)).slice(0, MOST);
  const layout = layoutOf(width, shown.length);
  return (
    <div class="map" ref={box}>
      {width > 0 && (
        <svg width={layout.width} height={layout.height} role="group" aria-label="Map of clusters">
          {shown.map((cluster, index) => (
            <Lines
              cluster={cluster}
              layout={layout}
              to={layout.others[index] ?? layout.own}
              key={cluster.name}
            />
          ))}
          <Own model={model} layout={layout} />
          {shown.map((cluster, index) => (
            <Card
              cluster={cluster}
              layout={layout}
              at={layout.others[index] ?? layout.own}
              key={cluster.name}
            />
          ))}
        </svg>
      )}
      <ul class="legend" aria-label="Legend">
        <li>
          <i class="swatch outgoing" /> we use it
        </li>
        <li>
          <i class="swatch incoming" /> it uses us
        </li>
        <li>
          <i class="swatch waiting" /> not agreed yet
        </li>
        <li>
          <i class="dot good" /> tunnel up
        </li>
        <li>
          <i class="dot bad" /> tunnel down
        </li>
        {shown.length < all.length && <li>{all.length - shown.length} more below</li>}
      </ul>
    </div>
  );
}

const lineClass = (way: string, { phase }: DirectionModel): string =>
  `line ${way} ${phase === 'Established' ? 'flows' : phase === 'Denied' ? 'denied' : 'waiting'}`;

function Lines({ cluster, layout, to }: { cluster: ClusterModel; layout: MapLayout; to: Point }): VNode {
  const { outgoing, incoming, tunnel } = cluster;
  const isBoth = outgoing.phase !== 'None' && incoming.phase !== 'None';
  const bend = isBoth ? (layout.isNarrow ? 5 : 9) : 0;
  const isQuiet = outgoing.phase === 'None' && incoming.phase === 'None';
  return (
    <g aria-hidden="true">
      {isQuiet && <path class="line seen" d={lineBetween(layout, to, 0).path} />}
      {outgoing.phase !== 'None' && (
        <path class={lineClass('outgoing', outgoing)} d={lineBetween(layout, to, bend).path} />
      )}
      {incoming.phase !== 'None' && (
        <path class={lineClass('incoming', incoming)} d={lineBetween(layout, to, -bend).path} />
      )}
      {tunnel && <TunnelMark tunnel={tunnel} layout={layout} at={lineBetween(layout, to, 0).middle} />}
    </g>
  );
}

/** How long a round trip takes, or that none comes back. */
function TunnelMark({ tunnel, layout, at }: { tunnel: TunnelModel; layout: MapLayout; at: Point }): VNode {
  const text = tunnel.isReady ? tunnel.rttMs !== undefined && `${tunnel.rttMs} ms` : 'down';
  const dot = tunnel.isReady ? 'tunnel good' : 'tunnel bad';
  const isPlain = layout.isNarrow || text === false;
  return (
    <g transform={`translate(${at.x} ${at.y})`}>
      {!isPlain && <rect class="rtt-back" x="-30" y="-12" width="60" height="24" rx="12" />}
      <circle class={dot} cx={isPlain ? 0 : -18} r="5" />
      {!isPlain && (
        <text class="rtt" x="-8" y="4">
          {text}
        </text>
      )}
    </g>
  );
}

function Own({ model, layout }: { model: DashboardModel; layout: MapLayout }): VNode {
  const { own, card } = layout;
  return (
    <g transform={`translate(${own.x - card.width / 2} ${own.y - card.height / 2})`}>
      <rect class="card own" width={card.width} height={card.height} rx="14" />
      <text class="card-title own" x="16" y={card.height / 2 - 4}>
        {cut(model.own.clusterName, 18)}
      </text>
      <text class="card-text own" x="16" y={card.height / 2 + 16}>
        this cluster
      </text>
    </g>
  );
}

function Card({ cluster, layout, at }: { cluster: ClusterModel; layout: MapLayout; at: Point }): VNode {
  const { card } = layout;
  const isEstablished = [cluster.outgoing.phase, cluster.incoming.phase].includes('Established');
  const text = glance(cluster);
  const most = Math.floor((card.width - 40) / 7.2);
  return (
    <a
      href={`#cluster-${cluster.name}`}
      class={`node ${isEstablished ? 'established' : ''} ${text === 'waits for you' ? 'asks' : ''}`}
      data-cluster={cluster.name}
    >
      <g transform={`translate(${at.x - card.width / 2} ${at.y - card.height / 2})`}>
        <rect class="card" width={card.width} height={card.height} rx="14" />
        <circle
          class={cluster.isConnected ? 'link good' : 'link calm'}
          cx="18"
          cy={card.height / 2 - 9}
          r="5"
        />
        <text class="card-title" x="32" y={card.height / 2 - 4}>
          {cut(cluster.title, most)}
        </text>{' '}
        <text class="card-text" x="16" y={card.height / 2 + 16}>
          {cut(text, Math.floor((card.width - 24) / 6.2))}
        </text>
      </g>
    </a>
  );
}
