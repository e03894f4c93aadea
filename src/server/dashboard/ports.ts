/** What the listener asks of the rest: it knows sessions and bytes, and nothing of clusters. */
export interface DashboardVisitor {
  readonly user: string;
  /** Serialised as JSON for the page. */
  model(): object;
  /** Throws Unauthorized when the token has ended. */
  review(): Promise<void>;
  /** Takes what the page sent, unchecked; returns a line that says what was done. */
  act(body: unknown): Promise<string>;
  onChange(listener: () => void): () => void;
  close(): Promise<void>;
}

/** Throws Unauthorized for a token of nobody. */
export type SignIn = (token: string) => Promise<DashboardVisitor>;
