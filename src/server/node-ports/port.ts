/** Where what arrives is sent: a Service, whose endpoint is chosen on the way. */
export interface Place {
  clusterIP: string;
  servicePort: number;
}

/** A port to listen on. Two of one protocol never have the same number: API servers see to that. */
export interface WantedPort extends Place {
  protocol: 'TCP' | 'UDP';
  port: number;
  /** For people: whose it is. */
  service: string;
}

/** One that is listened on. */
export interface Port {
  listen: (host: string, port: number) => Promise<void>;
  close: () => Promise<void>;
}
