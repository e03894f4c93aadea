/** How the agents of providers are started: a pod for each provider, or one pod, of role `peers`, for all. */
export const AGENTS_CHOICES = ['perPeer', 'shared'] as const;
export type AgentsChoice = (typeof AGENTS_CHOICES)[number];
/** One process then holds the credentials of one provider only. */
export const DEFAULT_AGENTS: AgentsChoice = 'perPeer';
