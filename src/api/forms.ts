import {
  CLUSTER_ID_PATTERN,
  CLUSTER_NAME_PATTERN,
  ENDPOINT_PATTERN,
  MAX_ENDPOINT_LENGTH,
  OWN_CLUSTER_NAME_PATTERN,
} from './limits.ts';

const CLUSTER_ID = new RegExp(CLUSTER_ID_PATTERN, 'u');
const CLUSTER_NAME = new RegExp(CLUSTER_NAME_PATTERN, 'u');
const OWN_CLUSTER_NAME = new RegExp(OWN_CLUSTER_NAME_PATTERN, 'u');
const ENDPOINT = new RegExp(ENDPOINT_PATTERN, 'u');

/** Whether a text has the form that the CRDs accept for it; a text from a peer or a network may not. */
export const isClusterID = (text: string): boolean => CLUSTER_ID.test(text);
export const isClusterName = (text: string): boolean => CLUSTER_NAME.test(text);
export const isOwnClusterName = (text: string): boolean => OWN_CLUSTER_NAME.test(text);
export const isEndpoint = (text: string): boolean =>
  text.length <= MAX_ENDPOINT_LENGTH && ENDPOINT.test(text);

/** Follows "is not". */
export const OWN_CLUSTER_NAME_FORM =
  'a DNS label, such as rome-2: at most 63 lower-case letters, digits and dashes, no dash at an end';
