/** The Prometheus text format 0.0.4, as far as the kubelet's resource metrics need it. */
export interface Sample {
  labels?: Record<string, string>;
  value: number;
  /** Milliseconds since the epoch; without it the scraper takes its own time. */
  timestampMs?: number;
}

export interface Family {
  name: string;
  help: string;
  type: 'counter' | 'gauge';
  samples: Sample[];
}

const escapeLabel = (value: string): string =>
  value
    .replaceAll('\\', String.raw`\\`)
    .replaceAll('"', String.raw`\"`)
    .replaceAll('\n', String.raw`\n`);

function line(name: string, { labels = {}, value, timestampMs }: Sample): string {
  const list = Object.entries(labels).map(([label, text]) => `${label}="${escapeLabel(text)}"`);
  const braces = list.length === 0 ? '' : `{${list.join(',')}}`;
  const time = timestampMs === undefined ? '' : ` ${Math.round(timestampMs)}`;
  return `${name}${braces} ${value}${time}\n`;
}

/** Families in the order given, those without a sample left out. */
export function formatExposition(families: readonly Family[]): string {
  const written = families.filter(({ samples }) => samples.length > 0);
  return written
    .map(({ name, help, type, samples }) => {
      const lines = samples.map((sample) => line(name, sample)).join('');
      return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines}`;
    })
    .join('');
}
