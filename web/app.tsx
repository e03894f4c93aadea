/** The page: signing in, or the whole of the dashboard. */
import type { VNode } from 'preact';
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import type { DashboardAction, DashboardModel } from '../src/dashboard/model.ts';
import { act, follow, signIn, signOut, whoAmI } from './api.ts';
import { Clusters } from './clusters.tsx';
import { Decisions } from './decisions.tsx';
import { AskDialog, OffloadDialog, PeerDialog } from './dialogs.tsx';
import type { Asking } from './doing.ts';
import { ClusterMap } from './map.tsx';
import { Badge, Hidden, Section, toneOf } from './parts.tsx';
import { SignIn } from './sign-in.tsx';
import { Namespaces, News, Tunnels } from './tables.tsx';

type Stage = 'asking' | 'out' | 'in';

/** A code that `tributary dashboard` has put behind the `#`: used at once, and taken out of the address. */
function takeCode(): string | undefined {
  const code = /^#code=([\w-]{20,64})$/u.exec(location.hash)?.[1];
  if (code !== undefined) history.replaceState(null, '', location.pathname);
  return code;
}

export function App(): VNode {
  const [stage, setStage] = useState<Stage>('asking');
  const [message, setMessage] = useState('');
  useEffect(() => {
    const begin = async (): Promise<void> => {
      const code = takeCode();
      if (code !== undefined) {
        const answer = await signIn({ code });
        setMessage(answer.ok ? '' : answer.failure.message);
        if (answer.ok) return setStage('in');
      }
      const known = await whoAmI();
      setStage(known.ok && known.value.user !== undefined ? 'in' : 'out');
    };
    void begin();
  }, []);
  const out = useCallback((why: string) => {
    setMessage(why);
    setStage('out');
  }, []);
  if (stage === 'asking') return <main class="sign-in" aria-busy="true" />;
  if (stage === 'out') return <SignIn message={message} onIn={() => setStage('in')} />;
  return <Dashboard onOut={out} />;
}

/** What was just done, or why it was not. */
interface Outcome {
  text: string;
  isBad: boolean;
}

const OUTCOME_MS = 12_000;
const CLOCK_MS = 5000;

function useOutcome(): [Outcome | undefined, (outcome: Outcome | undefined) => void] {
  const [outcome, setOutcome] = useState<Outcome>();
  useEffect(() => {
    if (outcome === undefined || outcome.isBad) return undefined;
    const timer = setTimeout(() => setOutcome(undefined), OUTCOME_MS);
    return () => clearTimeout(timer);
  }, [outcome]);
  return [outcome, setOutcome];
}

function useNow(): number {
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), CLOCK_MS);
    return () => clearInterval(timer);
  }, []);
  return now;
}

type Open = { kind: 'peer' } | { kind: 'offload'; namespace: string } | { kind: 'ask'; asking: Asking };

function Dashboard({ onOut }: { onOut: (why: string) => void }): VNode {
  const [model, setModel] = useState<DashboardModel>();
  const [isLive, setLive] = useState(false);
  const [open, setOpen] = useState<Open>();
  const [outcome, setOutcome] = useOutcome();
  const now = useNow();
  useEffect(
    () =>
      follow({
        onModel: setModel,
        onLive: setLive,
        onEnd: () => onOut('Your session has ended, or your token has. Sign in again.'),
      }),
    [onOut],
  );
  const run = async (action: DashboardAction): Promise<boolean> => {
    const answer = await act(action);
    if (answer.ok) setOutcome({ text: answer.value.done, isBad: false });
    else setOutcome({ text: answer.failure.message, isBad: true });
    return answer.ok;
  };
  const close = (): void => setOpen(undefined);
  const ask = (asking: Asking): void => setOpen({ kind: 'ask', asking });
  if (model === undefined) return <main class="sign-in" aria-busy="true" />;
  return (
    <>
      <Header model={model} isLive={isLive} onOut={onOut} />
      <main>
        <Tether model={model} ask={ask} />
        <div class="top">
          <Section id="map" title="Map" aside={<Live isLive={isLive} />}>
            {model.hidden.includes('foreignclusters') ? (
              <Hidden kinds="ForeignClusters" />
            ) : (
              <ClusterMap model={model} />
            )}
          </Section>
          <div class="side">
            <Decisions clusters={model.clusters} run={run} />
            <News model={model} now={now} />
          </div>
        </div>
        <Clusters model={model} ask={ask} onPeer={() => setOpen({ kind: 'peer' })} />
        <Tunnels model={model} />
        <Namespaces
          model={model}
          ask={ask}
          onOffload={(namespace) => setOpen({ kind: 'offload', namespace })}
        />
      </main>
      <Toast outcome={outcome} onClose={() => setOutcome(undefined)} isBelow={open !== undefined} />
      <Changes model={model} />
      {open?.kind === 'peer' && <PeerDialog run={run} onClose={close} />}
      {open?.kind === 'offload' && <OffloadDialog namespace={open.namespace} run={run} onClose={close} />}
      {open?.kind === 'ask' && <AskDialog asking={open.asking} run={run} onClose={close} />}
    </>
  );
}

const Live = ({ isLive }: { isLive: boolean }): VNode => (
  <span class={isLive ? 'live' : 'live off'}>{isLive ? 'live' : 'reconnecting…'}</span>
);

function Header({
  model,
  onOut,
}: {
  model: DashboardModel;
  isLive: boolean;
  onOut: (why: string) => void;
}): VNode {
  const leave = async (): Promise<void> => {
    await signOut();
    onOut('');
  };
  return (
    <header>
      <img src="/icon.svg" alt="" width="32" height="32" />
      <div class="who">
        <h1>
          Tributary <span class="slash">/</span> {model.own.clusterName}
        </h1>
        <p class="muted mono small">{model.own.clusterID}</p>
      </div>
      <div class="me">
        <span class="muted small">{model.user}</span>
        <button type="button" onClick={() => void leave()}>
          Sign out
        </button>
      </div>
    </header>
  );
}

function Tether({
  model: { tether },
  ask,
}: {
  model: DashboardModel;
  ask: (asking: Asking) => void;
}): VNode | null {
  if (tether === undefined) return null;
  return (
    <section class="panel tether" aria-label="Tether">
      <Badge tone={toneOf(tether.phase)}>{tether.phase}</Badge>
      <p>
        {tether.cluster !== undefined && <strong>{tether.cluster} </strong>}
        {tether.message}
      </p>
      {tether.phase !== 'Ending' && (
        <button
          type="button"
          onClick={() =>
            ask({
              title: 'End the tether?',
              text: 'This cluster decides about its nodes again; what it has forwarded comes home or ends.',
              word: 'End it',
              isHarsh: true,
              action: { do: 'untether' },
            })
          }
        >
          Untether
        </button>
      )}
    </section>
  );
}

interface ToastProps {
  outcome: Outcome | undefined;
  onClose: () => void;
  /** A dialog is open, and would cover it. */
  isBelow: boolean;
}

/** A popover is above dialogs, too. */
function Toast({ outcome, onClose, isBelow }: ToastProps): VNode {
  const element = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const box = element.current;
    if (box === null) return;
    if (box.matches(':popover-open')) box.hidePopover();
    if (outcome !== undefined) box.showPopover();
  }, [outcome, isBelow]);
  return (
    <div ref={element} popover="manual" class={outcome?.isBad === true ? 'toast bad' : 'toast'}>
      <p role={outcome?.isBad === true ? 'alert' : 'status'}>{outcome?.text}</p>
      <button type="button" onClick={onClose}>
        Close
      </button>
    </div>
  );
}

/** Says to those who do not see the map what has changed on it. */
function Changes({ model }: { model: DashboardModel }): VNode {
  const before = useRef<DashboardModel>(model);
  const [text, setText] = useState('');
  useEffect(() => {
    const changes = changesBetween(before.current, model);
    before.current = model;
    if (changes.length > 0) setText(changes.slice(0, 3).join('. '));
  }, [model]);
  return (
    <p class="unseen" aria-live="polite" id="changes">
      {text}
    </p>
  );
}

function changesBetween(before: DashboardModel, after: DashboardModel): string[] {
  const known = new Map(before.clusters.map((cluster) => [cluster.name, cluster]));
  return after.clusters.flatMap((cluster) => {
    const old = known.get(cluster.name);
    if (old === undefined) return [`${cluster.title} was found`];
    return [
      ...(old.outgoing.phase === cluster.outgoing.phase
        ? []
        : [`We use ${cluster.title}: ${cluster.outgoing.phase}`]),
      ...(old.incoming.phase === cluster.incoming.phase
        ? []
        : [`${cluster.title} uses us: ${cluster.incoming.phase}`]),
      ...(old.tunnel?.isReady === cluster.tunnel?.isReady
        ? []
        : [`Tunnel to ${cluster.title}: ${cluster.tunnel?.isReady === true ? 'up' : 'down'}`]),
    ];
  });
}
