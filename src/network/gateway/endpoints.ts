/** Where a peer is dialled. Pure: what was observed goes in, the choice comes out. */

export interface EndpointFacts {
  /** Milliseconds, monotonic. */
  now: number;
  /** What the peer has announced, resolved: literal `host:port`, the first is preferred. */
  announced: readonly string[];
  /** Where WireGuard sends to now. Learnt from the peer's packets, unless it is what was chosen. */
  current?: string;
  /** Whether the peer has been heard lately through the tunnel; absent: not measured yet. */
  answering?: boolean;
  /** The choice before; absent: none yet in this process. */
  before?: EndpointChoice;
  /** Where it was heard last by whichever gateway of ours was active. */
  lastKnown?: string;
}

export interface EndpointChoice {
  endpoint: string;
  /** Since when; for one that answers, when it did last. Monotonic. */
  since: number;
  /** Which try it is since the peer was heard last, from 1; 0: it answers. */
  attempt: number;
  /** Where the peer was heard last. */
  heard?: string;
  /** What the peer had announced then. */
  announced: readonly string[];
}

/** WireGuard repeats a handshake after 5 s (REKEY_TIMEOUT): below that, an endpoint is not given its chance. */
const TRY_MS = 5000;
const LONGEST_TRY_MS = 30_000;

/**
 * A peer that answers is left where it is: WireGuard follows it when it moves. One that does not is looked for at its
 * endpoints in turn, longer from try to try; at one that it has announced since, at once.
 */
export function chooseEndpoint(facts: EndpointFacts): EndpointChoice | undefined {
  const { now, announced, current, answering, before } = facts;
  if (answering === true && current !== undefined) {
    return { endpoint: current, since: now, attempt: 0, heard: current, announced };
  }
  if (before === undefined) return firstChoice(facts);
  // A program that has just started must not move a peer that goes on all the while.
  const isEarly = answering === undefined && before.endpoint === current;
  if (isEarly && now - before.since < TRY_MS) return before;
  return nextChoice(before, facts);
}

/** WireGuard may know better than what is announced: it outlives this program. */
function firstChoice({ now, announced, current, lastKnown }: EndpointFacts): EndpointChoice | undefined {
  const heard = current ?? lastKnown;
  const endpoint = current ?? announced[0] ?? lastKnown;
  if (endpoint === undefined) return undefined;
  return { endpoint, since: now, attempt: 1, announced, ...(heard !== undefined && { heard }) };
}

function nextChoice(before: EndpointChoice, { now, announced }: EndpointFacts): EndpointChoice | undefined {
  const { heard } = before;
  const rest = { since: now, announced, ...(heard !== undefined && { heard }) };
  const news = newsOf(before, announced);
  if (news !== undefined) return { endpoint: news, attempt: 1, ...rest };
  const candidates = [...new Set([...announced, ...(heard === undefined ? [] : [heard])])];
  const at = candidates.indexOf(before.endpoint);
  const tryMs = Math.min(TRY_MS * Math.max(before.attempt, 1), LONGEST_TRY_MS);
  if (at !== -1 && now - before.since < tryMs) return { ...before, announced };
  const endpoint = candidates[(at + 1) % Math.max(candidates.length, 1)];
  return endpoint === undefined ? undefined : { endpoint, attempt: before.attempt + 1, ...rest };
}

/** What the peer has announced since it was heard, or since we began with the endpoint that does not answer. */
function newsOf(before: EndpointChoice, announced: readonly string[]): string | undefined {
  const [first] = announced;
  if (before.attempt === 0) return announced.includes(before.endpoint) ? undefined : first;
  return announced.find((endpoint) => !before.announced.includes(endpoint));
}

/** Behind NAT nobody reaches us but through the mapping that our own packets keep open. */
export const keepaliveSeconds = (dialable: boolean): number => (dialable ? 25 : 5);
