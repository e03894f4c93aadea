/** One person who is signed in: what they may see, as the API server says with their own token, and what they do. */
import { events } from '../api/resources.ts';
import type { KubeEvent } from '../api/wire.ts';
import type { KubeClient } from '../kube/client.ts';
import { Informer } from '../kube/informer.ts';
import type { Basics } from '../lib/basics.ts';
import { Debounce } from '../lib/debounce.ts';
import { startDeadline } from '../lib/deadline.ts';
import { Listeners } from '../lib/listeners.ts';
import { listable, whoIs } from './access.ts';
import { readAction } from './actions.ts';
import type { Board } from './board.ts';
import type { DashboardModel, SectionKind } from './model.ts';
import { perform } from './perform.ts';
import { viewOf } from './view.ts';

interface VisitorOptions extends Basics {
  /** Carries the person's own token; closed with the visitor. */
  client: KubeClient;
  board: Pick<Board, 'facts' | 'onChange'>;
}

/** Rights that are taken away count after this long at the latest. */
const REVIEW_MS = 10_000;
const ASK_MS = 10_000;
const NEWS_MS = 250;

export class Visitor {
  readonly user: string;
  readonly #options: VisitorOptions;
  readonly #listeners = new Listeners();
  /** What they see may have changed. */
  readonly onChange: Listeners['add'] = this.#listeners.add;
  readonly #newsChanged: Debounce;
  readonly #forget: () => void;
  #may: ReadonlySet<SectionKind>;
  #reviewedAt: number;
  #reviewing: Promise<void> | undefined;
  #events: Informer<KubeEvent> | undefined;

  private constructor(user: string, may: ReadonlySet<SectionKind>, options: VisitorOptions) {
    this.user = user;
    this.#may = may;
    this.#options = options;
    this.#reviewedAt = options.clock.monotonic();
    this.#newsChanged = new Debounce({ clock: options.clock, intervalMs: NEWS_MS, callsAtOnce: true }, () =>
      this.#listeners.tell(),
    );
    this.#forget = options.board.onChange(() => this.#listeners.tell());
    this.#followEvents();
  }

  /** Throws Unauthorized when the token is of nobody. */
  static async signedIn(token: string, options: VisitorOptions): Promise<Visitor> {
    const { client, clock } = options;
    using deadline = startDeadline(clock, ASK_MS, 'sign-in at the API server');
    const user = await whoIs(client, { token, now: clock.now(), signal: deadline.signal });
    return new Visitor(user, await listable(options.client, deadline.signal), options);
  }

  model(): DashboardModel {
    const events = [...(this.#events?.list() ?? [])];
    return viewOf(this.#options.board.facts(), { user: this.user, may: this.#may, events });
  }

  /** Asks again what they may see, if the last answer is old. Throws Unauthorized once the token has ended. */
  async review(): Promise<void> {
    const { clock } = this.#options;
    if (clock.monotonic() - this.#reviewedAt < REVIEW_MS) return;
    this.#reviewing ??= this.#askAgain().finally(() => (this.#reviewing = undefined));
    await this.#reviewing;
  }

  /** Returns a line that says what was done. */
  async act(body: unknown): Promise<string> {
    const action = readAction(body);
    using deadline = startDeadline(this.#options.clock, ASK_MS, 'the API server');
    const line = await perform(action, { client: this.#options.client, signal: deadline.signal });
    this.#options.log.info('dashboard action', { user: this.user, action: action.do });
    return line;
  }

  async close(): Promise<void> {
    this.#forget();
    this.#newsChanged.stop();
    await this.#events?.stop();
    await this.#options.client.close();
  }

  async #askAgain(): Promise<void> {
    const { client, clock } = this.#options;
    using deadline = startDeadline(clock, ASK_MS, 'review of rights by the API server');
    this.#may = await listable(client, deadline.signal);
    this.#reviewedAt = clock.monotonic();
    this.#followEvents();
    this.#listeners.tell();
  }

  /** With their own token: the role itself has no right to read events. */
  #followEvents(): void {
    if (!this.#may.has('events')) {
      void this.#events?.stop();
      this.#events = undefined;
      return;
    }
    if (this.#events !== undefined) return;
    const { client, clock, log } = this.#options;
    const list = { fieldSelector: 'reportingComponent=tributary' };
    const events_ = new Informer<KubeEvent>({ client, type: events, list, clock, log });
    events_.onChange(() => this.#newsChanged.trigger());
    this.#events = events_;
    events_.start(new AbortController().signal).catch(() => undefined);
  }
}
