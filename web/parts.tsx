/** Small things that all sections use. */
import type { ComponentChildren, VNode } from 'preact';
import type { DirectionModel } from '../src/dashboard/model.ts';

export type Tone = 'good' | 'busy' | 'bad' | 'calm';

const TONES: Readonly<Record<string, Tone>> = {
  Established: 'good',
  Accepted: 'busy',
  Ready: 'good',
  Pending: 'busy',
  Offered: 'busy',
  Ending: 'busy',
  Denied: 'bad',
  Refused: 'bad',
  Expired: 'bad',
  Failed: 'bad',
  Tethered: 'good',
  Entering: 'busy',
  Lost: 'bad',
};

export const toneOf = (word: string): Tone => TONES[word] ?? 'calm';

export const Badge = ({ tone, children }: { tone: Tone; children: ComponentChildren }): VNode => (
  <span class={`badge ${tone}`}>{children}</span>
);

interface SectionProps {
  id: string;
  title: string;
  /** Beside the title. */
  aside?: ComponentChildren;
  children: ComponentChildren;
}

export const Section = ({ id, title, aside, children }: SectionProps): VNode => (
  <section class="panel" aria-labelledby={`${id}-title`} id={id}>
    <div class="panel-head">
      <h2 id={`${id}-title`}>{title}</h2>
      {aside}
    </div>
    {children}
  </section>
);

export const Empty = ({ children }: { children: ComponentChildren }): VNode => (
  <p class="empty">{children}</p>
);

export const Hidden = ({ kinds }: { kinds: string }): VNode => (
  <p class="empty">You have no right to list {kinds} in this cluster.</p>
);

export const Why = ({ reason, message }: { reason?: string; message?: string }): VNode | null => {
  const isPlain = reason === undefined || reason === 'AsExpected';
  if (isPlain && message === undefined) return null;
  return (
    <p class="why">
      {!isPlain && <strong>{reason}</strong>} {message}
    </p>
  );
};

export const Phase = ({ label, state }: { label: string; state: DirectionModel }): VNode => (
  <div class="phase">
    <span class="label">{label}</span>
    <Badge tone={toneOf(state.phase)}>{state.phase === 'None' ? 'no' : state.phase}</Badge>
    {(state.phase !== 'Established' || (state.reason ?? 'AsExpected') !== 'AsExpected') && <Why {...state} />}
  </div>
);

interface TableProps {
  caption: string;
  heads: readonly string[];
  rows: readonly { key: string; cells: readonly ComponentChildren[] }[];
}

/** Rows become cards where the window is narrow; the roles say that it still is a table. */
export const Table = ({ caption, heads, rows }: TableProps): VNode => (
  <table role="table" class="table">
    <caption class="unseen">{caption}</caption>
    <thead role="rowgroup">
      <tr role="row">
        {heads.map((head) => (
          <th role="columnheader" scope="col" key={head}>
            {head}
          </th>
        ))}
      </tr>
    </thead>
    <tbody role="rowgroup">
      {rows.map(({ key, cells }) => (
        <tr role="row" key={key}>
          {cells.map((cell, index) => (
            <td role="cell" data-label={heads[index]} key={heads[index]}>
              {cell}
            </td>
          ))}
        </tr>
      ))}
    </tbody>
  </table>
);
