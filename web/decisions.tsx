/** Requests and offers that wait for the word of a person. */
import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import type { ClusterModel, DecisionModel } from '../src/dashboard/model.ts';
import type { Do } from './doing.ts';
import { mainResources, resourceName } from './format.ts';
import { Empty, Section } from './parts.tsx';

interface Waiting {
  cluster: ClusterModel;
  what: 'request' | 'offer';
  decision: DecisionModel;
}

export function waitingIn(clusters: readonly ClusterModel[]): Waiting[] {
  return clusters.flatMap((cluster) =>
    (['request', 'offer'] as const).flatMap((what) => {
      const decision = cluster[what];
      return decision?.waits === true ? [{ cluster, what, decision }] : [];
    }),
  );
}

export function Decisions({ clusters, run }: { clusters: readonly ClusterModel[]; run: Do }): VNode {
  const waiting = waitingIn(clusters);
  return (
    <Section
      id="decisions"
      title="Waits for you"
      aside={waiting.length > 0 && <span class="count">{waiting.length}</span>}
    >
      {waiting.length === 0 && <Empty>Nobody asks for anything.</Empty>}
      <ul class="stack">
        {waiting.map((one) => (
          <Decision {...one} run={run} key={`${one.what} ${one.decision.name}`} />
        ))}
      </ul>
    </Section>
  );
}

export function Decision({ cluster, what, decision, run }: Waiting & { run: Do }): VNode {
  const [isBusy, setBusy] = useState(false);
  const decide = async (verb: 'approve' | 'deny'): Promise<void> => {
    setBusy(true);
    await run({ do: verb, what, name: decision.name });
    setBusy(false);
  };
  const resources = mainResources(decision.resources ?? {});
  return (
    <li class="decision">
      <p>
        <strong>{cluster.title}</strong>{' '}
        {what === 'request' ? 'asks to use this cluster' : 'offers to run our pods'}
        {decision.namespaces && decision.namespaces.length > 0 && (
          <>
            , for <span class="mono">{decision.namespaces.join(', ')}</span>
            {decision.moreNamespaces !== undefined && <> and {decision.moreNamespaces} more</>}
          </>
        )}
      </p>
      {resources.length > 0 && (
        <p class="muted">
          {resources.map(([name, amount]) => `${amount} ${resourceName(name)}`).join(' · ')}
          {decision.prices && decision.prices.length > 0 && ` · ${decision.prices.join(', ')}`}
        </p>
      )}
      <div class="buttons">
        <button type="button" class="main" disabled={isBusy} onClick={() => void decide('approve')}>
          Approve<span class="unseen"> {cluster.title}</span>
        </button>
        <button type="button" disabled={isBusy} onClick={() => void decide('deny')}>
          Deny<span class="unseen"> {cluster.title}</span>
        </button>
      </div>
    </li>
  );
}
