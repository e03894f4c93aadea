/** What a doctor is given: lists that are empty but for some rows. */
import { type Facts, LIST_NAMES, type Lists } from '../../../../src/doctor/facts.ts';

export const NOW: number = Date.parse('2026-01-01T12:00:00Z');
export const ID = 'r6my56alsvbb5wp4edavh5rzep';
type Rows = Partial<Record<keyof Lists, readonly object[]>>;

export function facts(rows: Rows, more: Partial<Facts> = {}): Facts {
  const empty = Object.fromEntries(LIST_NAMES.map((kind) => [kind, { items: [] }]));
  const lists = {
    ...empty,
    ...Object.fromEntries(Object.entries(rows).map(([kind, items]) => [kind, { items }])),
  };
  return {
    now: NOW,
    software: '0.2.0',
    apiServer: { url: 'https://here', version: 'v1.33.1', dateMs: NOW, hereMs: NOW },
    lists: lists as unknown as Lists,
    dialled: new Map(),
    expectedRights: [],
    ...more,
  };
}

export const condition = (type: string, status: string, reason: string, message = 'so'): object => ({
  type,
  status,
  reason,
  message,
});
