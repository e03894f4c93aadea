/** Reads what the page asks for. It comes from a browser: form, sizes and names are checked before anything is done. */
import { isClusterID, isEndpoint } from '../api/forms.ts';

import { isFields, ownField } from '../lib/fields.ts';
import { TributaryError } from '../lib/errors.ts';
import type { DashboardAction } from './model.ts';

/** As Kubernetes names objects, and shorter names such as those of namespaces. */
const NAME = /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/u;
/** CLUSTER_ID.NAME.SECRET */
const TOKEN = /^[a-z0-9]{26}\.[a-z0-9.-]{1,63}\.[A-Za-z0-9_-]{20,200}$/u;

const invalid = (message: string): TributaryError => new TributaryError('Invalid', message);

/** Throws Invalid, with a line for a person. */
export function readAction(body: unknown): DashboardAction {
  if (!isFields(body)) throw invalid('the request is no object');
  const text = (name: string): string => {
    const value = ownField(body, name);
    return typeof value === 'string' ? value.trim() : '';
  };
  const named = (field: string): string => {
    const name = text(field);
    if (!NAME.test(name)) throw invalid(`"${name.slice(0, 60)}" is not the name of an object`);
    return name;
  };
  const verb = text('do');
  switch (verb) {
    case 'approve':
    case 'deny':
      return { do: verb, what: text('what') === 'offer' ? 'offer' : 'request', name: named('name') };
    case 'peer':
      return peerAction(text);
    case 'unpeer':
    case 'tether':
      return { do: verb, name: named('name') };
    case 'untether':
      return { do: verb };
    case 'offload': {
      const strategy = text('strategy') === 'Remote' ? 'Remote' : 'LocalAndRemote';
      return { do: verb, namespace: named('namespace'), strategy };
    }
    case 'unoffload':
      return { do: verb, namespace: named('namespace') };
    default:
      throw invalid('the page asks for something that this version does not know: load it again');
  }
}

function peerAction(text: (name: string) => string): DashboardAction {
  const [endpoint, token, given] = [text('endpoint'), text('token'), text('clusterID')];
  if (!isEndpoint(endpoint)) {
    throw invalid(
      `"${endpoint.slice(0, 60)}" is not HOST:PORT, the address of the other cluster's peering endpoint`,
    );
  }
  if (token !== '' && !TOKEN.test(token)) {
    throw invalid('this is no join token; make one over there with: tributary token create');
  }
  const clusterID = given === '' ? (token.split('.', 1)[0] ?? '') : given;
  if (clusterID === '') {
    throw invalid('give the ClusterID of the other cluster (over there: tributary id), or a token of it');
  }
  if (!isClusterID(clusterID))
    throw invalid('a ClusterID is 26 letters and digits; over there: tributary id');
  if (token !== '' && !token.startsWith(`${clusterID}.`)) {
    throw invalid('the token is of another cluster than the ClusterID');
  }
  return { do: 'peer', endpoint, clusterID, ...(token !== '' && { token }) };
}
