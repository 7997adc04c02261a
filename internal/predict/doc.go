// Package predict turns a recording, policies and a machine into a prediction.
package predict
