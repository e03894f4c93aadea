/** Grafana's JSON for panels, as little of it as a dashboard needs. */
export interface Panel {
  title: string;
  kind: 'timeseries' | 'stat' | 'table';
  /** As Grafana names units. */
  unit?: 'short' | 's' | 'bytes' | 'Bps' | 'percentunit' | 'pps' | 'dateTimeFromNow' | 'reqps';
  /** Each expression, with its legend. */
  queries: readonly (readonly [expr: string, legend: string])[];
  /** What the reader should know. */
  description: string;
}

/** A variable by which people choose, from the values of a label. */
export interface Choice {
  name: string;
  metric: string;
  label: string;
}

export interface Dashboard {
  uid: string;
  title: string;
  choices: readonly Choice[];
  panels: readonly Panel[];
}

const WIDTH = 8;
const HEIGHT = 7;
/** Three side by side. */
const placeOf = (at: number): object => ({
  h: HEIGHT,
  w: WIDTH,
  x: (at % 3) * WIDTH,
  y: Math.floor(at / 3) * HEIGHT,
});

const source = { type: 'prometheus', uid: '${datasource}' };

/** The model that Grafana 9 and later import. */
export const grafanaOf = ({ uid, title, choices, panels }: Dashboard): object => ({
  uid,
  title,
  tags: ['tributary'],
  schemaVersion: 38,
  version: 1,
  editable: true,
  refresh: '30s',
  time: { from: 'now-3h', to: 'now' },
  timezone: '',
  templating: {
    list: [
      { name: 'datasource', label: 'Data source', type: 'datasource', query: 'prometheus' },
      ...choices.map(({ name, metric, label }) => ({
        name,
        type: 'query',
        datasource: source,
        query: { query: `label_values(${metric}, ${label})`, refId: name },
        includeAll: true,
        multi: true,
        allValue: '.*',
        refresh: 2,
        sort: 1,
      })),
    ],
  },
  panels: panels.map(({ kind, unit = 'short', queries, ...panel }, at) => ({
    ...panel,
    id: at + 1,
    type: kind,
    datasource: source,
    gridPos: placeOf(at),
    fieldConfig: { defaults: { unit, min: unit === 'dateTimeFromNow' ? null : 0 }, overrides: [] },
    options: kind === 'stat' ? { reduceOptions: { calcs: ['lastNotNull'] } } : {},
    targets: queries.map(([expr, legendFormat], index) => ({
      refId: String.fromCodePoint(65 + index),
      datasource: source,
      expr,
      legendFormat,
      ...(kind === 'table' && { instant: true, format: 'table' }),
    })),
  })),
});
